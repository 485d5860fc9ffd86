// Handler classes made by a real inversify container: what is bound, resolved, deactivated and left alone.
import { Container, inject, injectable, preDestroy } from 'inversify';
import { ConfigurationError, PulseworkError, success } from 'pulsework';
import type { Outcome } from 'pulsework';
import { Handler, Subscribe } from 'pulsework/decorators';
import { inversifyResolver } from 'pulsework/inversify';
import { expect, it } from 'vitest';

const GATEWAY = Symbol('PaymentGateway');
interface PaymentGateway {
  readonly name: string;
}

@injectable()
@Handler({ subscription: 'billing' })
class Billing {
  closed = 0;
  constructor(@inject(GATEWAY) readonly gateway: PaymentGateway) {}
  @Subscribe('orders')
  charge(): Outcome {
    return success();
  }
  @preDestroy()
  close(): void {
    this.closed += 1;
  }
}

function resolverFor(container: Container) {
  const resolver = inversifyResolver(container);
  if (typeof resolver === 'function') throw new Error('an object was expected');
  return {
    // oxlint-disable-next-line typescript/no-explicit-any -- as resolvers get classes
    resolve: async <T extends object>(handlerClass: new (...args: any[]) => T): Promise<T> =>
      (await resolver.resolve(handlerClass)) as T,
    close: async () => resolver.close?.(),
  };
}

function containerWithGateway(): Container {
  const container = new Container();
  container.bind<PaymentGateway>(GATEWAY).toConstantValue({ name: 'bank' });
  return container;
}

async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

it('makes a handler class that is not bound, with its dependencies', async () => {
  const billing = await resolverFor(containerWithGateway()).resolve(Billing);

  expect(billing).toBeInstanceOf(Billing);
  expect(billing.gateway.name).toBe('bank');
});

it('waits for dependencies that are made asynchronously', async () => {
  const container = new Container();
  container
    .bind<PaymentGateway>(GATEWAY)
    .toDynamicValue(async () => Promise.resolve({ name: 'late bank' }))
    .inSingletonScope();

  const billing = await resolverFor(container).resolve(Billing);

  expect(billing.gateway.name).toBe('late bank');
});

it('resolves each class once', async () => {
  const resolver = resolverFor(containerWithGateway());

  const [first, second] = await Promise.all([resolver.resolve(Billing), resolver.resolve(Billing)]);

  expect(second).toBe(first);
});

it('resolves a class once even where the user bound it as transient', async () => {
  const container = containerWithGateway();
  container.bind(Billing).toSelf().inTransientScope();
  const resolver = resolverFor(container);

  expect(await resolver.resolve(Billing)).toBe(await resolver.resolve(Billing));
});

it('takes a class that the user bound as it is bound', async () => {
  const container = containerWithGateway();
  const own = new Billing({ name: 'own' });
  container.bind(Billing).toConstantValue(own);

  expect(await resolverFor(container).resolve(Billing)).toBe(own);
});

it('sees bindings of the containers above the given one', async () => {
  const resolver = resolverFor(new Container({ parent: containerWithGateway() }));

  expect((await resolver.resolve(Billing)).gateway.name).toBe('bank');
});

it('binds nothing in the user’s container', async () => {
  const container = containerWithGateway();
  await resolverFor(container).resolve(Billing);

  expect(container.isBound(Billing)).toBe(false);
});

it('deactivates what it made when the runtime closes', async () => {
  const resolver = resolverFor(containerWithGateway());
  const billing = await resolver.resolve(Billing);

  await resolver.close();

  expect(billing.closed).toBe(1);
});

it('waits for deactivation hooks that are asynchronous', async () => {
  const ended: string[] = [];
  @injectable()
  class Slow {
    @preDestroy()
    async close(): Promise<void> {
      await Promise.resolve();
      ended.push('closed');
    }
  }
  const resolver = resolverFor(new Container());
  await resolver.resolve(Slow);

  await resolver.close();

  expect(ended).toEqual(['closed']);
});

it('runs the user’s deactivation hook for a handler class', async () => {
  const container = containerWithGateway();
  const deactivated: unknown[] = [];
  container.onDeactivation(Billing, (billing) => void deactivated.push(billing));
  const resolver = resolverFor(container);
  const billing = await resolver.resolve(Billing);

  await resolver.close();

  expect(deactivated).toEqual([billing]);
});

it('leaves the user’s bindings and their instances alone at close', async () => {
  const container = containerWithGateway();
  container.bind(Billing).toSelf().inSingletonScope();
  const resolver = resolverFor(container);
  const billing = await resolver.resolve(Billing);

  await resolver.close();

  expect(billing.closed).toBe(0);
  expect(container.get(Billing)).toBe(billing);
  expect(container.isBound(GATEWAY)).toBe(true);
});

it('gives two runtimes on one container an instance each', async () => {
  const container = containerWithGateway();
  const [one, two] = [resolverFor(container), resolverFor(container)];
  const [first, second] = [await one.resolve(Billing), await two.resolve(Billing)];

  await one.close();

  expect(second).not.toBe(first);
  expect([first.closed, second.closed]).toEqual([1, 0]);
});

it('makes new instances when it is used again after close', async () => {
  const resolver = resolverFor(containerWithGateway());
  const first = await resolver.resolve(Billing);
  await resolver.close();

  expect(await resolver.resolve(Billing)).not.toBe(first);
});

it('can be closed twice, and without having resolved anything', async () => {
  const resolver = resolverFor(new Container());
  await resolver.close();

  await expect(resolver.close()).resolves.toBeUndefined();
});

it('names the class, the missing binding and the remedy', async () => {
  const error = await rejectionOf(resolverFor(new Container()).resolve(Billing));

  expect(error).toBeInstanceOf(ConfigurationError);
  expect((error as Error).message).toBe(
    'handler class Billing: inversify cannot make it: No bindings found for service: "Symbol(PaymentGateway)". ' +
      'Remedy: bind every dependency in the container given to inversifyResolver(), ' +
      'and put @injectable() on the class and @inject(token) on each constructor parameter',
  );
});

it('names the class and the remedy when a constructor parameter has no @inject', async () => {
  @injectable()
  class Bare {
    constructor(readonly gateway: PaymentGateway) {}
  }

  const error = await rejectionOf(resolverFor(new Container()).resolve(Bare));

  expect(error).toBeInstanceOf(ConfigurationError);
  expect((error as Error).message).toMatch(/handler class Bare: .*@inject\(token\) on each constructor parameter/);
});

it('tells a constructor that throws from a missing binding, and keeps the cause', async () => {
  const cause = new Error('no such host');
  @injectable()
  class Failing {
    constructor() {
      throw cause;
    }
  }

  const error = await rejectionOf(resolverFor(new Container()).resolve(Failing));

  expect(error).toBeInstanceOf(PulseworkError);
  expect(error).toMatchObject({
    code: 'START_FAILED',
    message: 'handler class Failing could not be made: no such host',
    cause,
  });
});

it('tells an asynchronous dependency that fails in the same way', async () => {
  const cause = new Error('refused');
  const container = new Container();
  container.bind<PaymentGateway>(GATEWAY).toDynamicValue(async () => Promise.reject(cause));

  const error = await rejectionOf(resolverFor(container).resolve(Billing));

  expect(error).toMatchObject({ code: 'START_FAILED', cause });
});
