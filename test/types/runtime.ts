// Compile-time promises of Runtime.start(): what it takes as handlers and as a resolver.
import { Container } from 'inversify';
import { Runtime, defineHandler, success } from 'pulsework';
import type { HandlerClass } from 'pulsework';
import { embedded } from 'pulsework/embedded';
import { inversifyResolver } from 'pulsework/inversify';
import { Abstract, Billing, Taken } from './decorators.js';
import { orders } from './topics.js';

const definition = defineHandler({ name: 'a', subscription: 'a', source: orders, handle: () => success() });
const transport = embedded();

export const runtimes: readonly Promise<Runtime>[] = [
  Runtime.start({ transport, handlers: [Billing, Taken, definition] }),
  Runtime.start({
    transport,
    handlers: [Billing],
    resolve: inversifyResolver(new Container()),
    namespace: 'acme/prod',
  }),
  Runtime.start({ transport, handlers: [Billing], resolve: () => new Billing('shop') }),
  // A resolver gets classes whose constructors may take anything: `new` compiles, and what it makes is an object.
  Runtime.start({ transport, handlers: [Billing], resolve: (HandlerClass) => new HandlerClass('shop', 5) }),
  Runtime.start({ transport, handlers: [Billing], resolve: { resolve: async (HandlerClass) => new HandlerClass() } }),
  Runtime.start({ transport, handlers: [Abstract], resolve: async (handlerClass: HandlerClass) => handlerClass }),
  Runtime.start({ transport, handlers: [], resolve: undefined, namespace: undefined }),
];

// @ts-expect-error an instance is not a class
void Runtime.start({ transport, handlers: [new Billing('shop')] });
// @ts-expect-error a function that is not defined as a handler
void Runtime.start({ transport, handlers: [() => success()] });
// @ts-expect-error a resolver gives an instance
void Runtime.start({ transport, handlers: [Billing], resolve: () => 'shop' });
// @ts-expect-error without a transport
void Runtime.start({ handlers: [definition] });
// @ts-expect-error a container is not a resolver
void Runtime.start({ transport, handlers: [Billing], resolve: new Container() });
// @ts-expect-error an unknown option
void Runtime.start({ transport, handlers: [Billing], resolver: inversifyResolver(new Container()) });

/** Outside handlers, publishing takes what the topic's schema takes. */
export async function publishing(runtime: Runtime): Promise<void> {
  const publisher = runtime.publisher(orders);
  await publisher.publish({ id: 'A-1', cents: '995' });
  // @ts-expect-error the output is not the input
  await publisher.publish({ id: 'A-1', cents: 995 });
}
