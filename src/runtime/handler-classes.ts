// From decorated classes to handler definitions: reads what decorators left, gets the instance, binds the methods.
import type {
  HandlerClass,
  HandlerClassDefinition,
  HandlerDefinition,
  HandlerFunction,
  HandlerMethod,
} from '../core/handler-definition.js';
import { HANDLER_CLASS } from '../core/handler-definition.js';
import { PulseworkError, describeValue } from '../core/errors.js';
import { withoutAbsent } from '../core/options.js';
import { isTopic } from '../core/topic.js';

/** A handler class as a resolver gets it, so that `new handlerClass(bank)` compiles. A container may bind an abstract one. */
// oxlint-disable-next-line typescript/no-explicit-any -- nobody knows what the constructor takes but who calls it
export type ResolvableClass = new (...args: any[]) => object;

/** Gives the instance of a handler class: a function, or an object that also wants to know about the end. */
export type HandlerResolver =
  | ((handlerClass: ResolvableClass) => object | Promise<object>)
  | {
      resolve(handlerClass: ResolvableClass): object | Promise<object>;
      /** Called once, after everything that could use an instance is closed. */
      close?(): void | Promise<void>;
    };

/** Handlers of one class whose instance is not there yet: `bind` needs it. */
export interface ClassHandlers {
  readonly handlerClass: HandlerClass;
  readonly definitions: readonly HandlerDefinition[];
  /** From now on the handlers run on `instance`. @throws PulseworkError START_FAILED when it lacks one of the methods. */
  bind(instance: object): void;
}

/** What a class's decorators left, or the problems that keep it from being used. @param at its place in the list of handlers. */
export function readHandlerClass(
  handlerClass: unknown,
  hasResolver: boolean,
  at: number,
): {
  readonly handlers: ClassHandlers | undefined;
  readonly problems: readonly string[];
} {
  if (typeof handlerClass !== 'function') {
    const hint = typeof handlerClass === 'object' ? '; pass the class and make its instance in "resolve"' : '';
    return failed(
      `"handlers" takes handler classes and results of defineHandler(), item ${at} is ${describeValue(handlerClass)}${hint}`,
    );
  }
  const name = handlerClass.name;
  const left = (handlerClass as { [HANDLER_CLASS]?: HandlerClassDefinition })[HANDLER_CLASS];
  if (left === undefined)
    return failed(`class ${name}: it has no decorators; put @Handler on it and @Subscribe on its methods`);
  if (left.defaults === undefined || !Object.hasOwn(handlerClass, HANDLER_CLASS)) {
    return failed(
      `class ${name}: its methods have @Subscribe but the class has no @Handler; put @Handler({ subscription }) on the class`,
    );
  }
  const odd = left.methods.find(
    ({ options }) => typeof (options as unknown) !== 'object' || (options as unknown) === null,
  );
  if (odd !== undefined)
    return failed(`class ${name}: the options of @Subscribe on ${String(odd.method)} must be an object`);
  if (handlerClass.length > 0 && !hasResolver) {
    return failed(
      `class ${name}: its constructor takes ${argumentsText(handlerClass.length)}; make it in "resolve", e.g. (C) => new C(...) or inversifyResolver(container)`,
    );
  }
  if (left.methods.length === 0) return failed(`class ${name}: @Handler is there but no method has @Subscribe`);
  return { handlers: bindable(handlerClass as unknown as HandlerClass, left), problems: [] };
}

/** The resolver as one shape; without one, classes are made by `new`. */
export function resolverOf(resolver: HandlerResolver | undefined): {
  resolve(handlerClass: HandlerClass): object | Promise<object>;
  close(): Promise<void>;
} {
  const resolve = typeof resolver === 'object' ? resolver.resolve.bind(resolver) : (resolver ?? ((c) => new c()));
  const close = typeof resolver === 'object' ? resolver.close?.bind(resolver) : undefined;
  return { resolve: (handlerClass) => resolve(handlerClass as ResolvableClass), close: async () => close?.() };
}

function argumentsText(count: number): string {
  return count === 1 ? '1 argument' : `${count} arguments`;
}

function failed(problem: string): { readonly handlers: undefined; readonly problems: readonly string[] } {
  return { handlers: undefined, problems: [problem] };
}

type Method = (delivery: unknown) => unknown;

function bindable(handlerClass: HandlerClass, left: HandlerClassDefinition): ClassHandlers {
  let instance: Record<string | symbol, unknown> = {};
  const definitions = left.methods.map((method) => {
    const handle = (delivery: unknown): unknown =>
      (instance as Record<string | symbol, Method>)[method.method]?.(delivery);
    return methodDefinition(nameOf(handlerClass, method, left.methods), left.defaults ?? {}, method, handle);
  });
  return {
    handlerClass,
    definitions,
    bind: (resolved) => {
      if (typeof (resolved as unknown) !== 'object' || (resolved as unknown) === null) {
        throw new PulseworkError(
          'START_FAILED',
          `class ${handlerClass.name}: "resolve" gave ${describeValue(resolved)}, not an instance of it`,
        );
      }
      instance = resolved as typeof instance;
      for (const { method } of left.methods) checkMethod(handlerClass, instance, method);
    },
  };
}

/** `Class.method`; with the source where one method serves several. */
function nameOf(
  handlerClass: HandlerClass,
  { method, source }: HandlerMethod,
  methods: readonly HandlerMethod[],
): string {
  const name = `${handlerClass.name}.${String(method)}`;
  if (methods.filter((other) => other.method === method).length === 1) return name;
  return `${name}@${typeof source === 'string' ? source : isTopic(source) ? source.name : 'several'}`;
}

function checkMethod(
  handlerClass: HandlerClass,
  instance: Record<string | symbol, unknown>,
  method: string | symbol,
): void {
  if (typeof instance[method] === 'function') return;
  const message = `class ${handlerClass.name}: the instance that was resolved has no method ${JSON.stringify(String(method))}; resolve an instance of the class`;
  throw new PulseworkError('START_FAILED', message);
}

function methodDefinition(
  name: string,
  defaults: NonNullable<HandlerClassDefinition['defaults']>,
  { source, options }: HandlerMethod,
  handle: (delivery: unknown) => unknown,
): HandlerDefinition {
  const { payload, codec, subscription, batch, ...own } = options;
  const { subscription: classSubscription, ...shared } = defaults;
  return {
    kind: 'handler',
    name,
    source,
    subscription: subscription ?? classSubscription ?? '',
    payload,
    codec,
    batch,
    options: { ...shared, ...withoutAbsent(own), redelivery: merged(shared.redelivery, own.redelivery) },
    handle: handle as HandlerFunction<never>,
  };
}

/** A method's fields win over its class's. What is no object goes on as it is, for the check of options to name. */
function merged<T extends object>(shared: T | undefined, own: T | undefined): T | undefined {
  if (shared === undefined || own === undefined) return own ?? shared;
  if (typeof shared !== 'object' || typeof own !== 'object') return typeof own === 'object' ? shared : own;
  return { ...shared, ...withoutAbsent(own) };
}
