// From decorated classes to handler definitions: reads what decorators left, gets the instance, binds the methods.
import type {
  HandlerClass,
  HandlerClassDefinition,
  HandlerDefinition,
  HandlerFunction,
  HandlerMethod,
} from '../core/handler-definition.js';
import { HANDLER_CLASS } from '../core/handler-definition.js';
import { describeValue } from '../core/errors.js';

/** Gives the instance of a handler class: a function, or an object that also wants to know about the end. */
export type HandlerResolver =
  | ((handlerClass: HandlerClass) => object | Promise<object>)
  | {
      resolve(handlerClass: HandlerClass): object | Promise<object>;
      /** Called once, after everything that could use an instance is closed. */
      close?(): void | Promise<void>;
    };

/** Handlers of one class whose instance is not there yet: `bind` needs it. */
export interface ClassHandlers {
  readonly handlerClass: HandlerClass;
  readonly definitions: readonly HandlerDefinition[];
  /** From now on the handlers run on `instance`. */
  bind(instance: object): void;
}

/** What a class's decorators left, or the problems that keep it from being used. */
export function readHandlerClass(handlerClass: unknown): {
  readonly handlers: ClassHandlers | undefined;
  readonly problems: readonly string[];
} {
  if (typeof handlerClass !== 'function') {
    return failed(
      `"handlers" takes handler classes and results of defineHandler(), got ${describeValue(handlerClass)}`,
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
  if (left.methods.length === 0) return failed(`class ${name}: @Handler is there but no method has @Subscribe`);
  return { handlers: bindable(handlerClass as unknown as HandlerClass, left), problems: [] };
}

/** The resolver as one shape; without one, classes are made by `new`. */
export function resolverOf(resolver: HandlerResolver | undefined): {
  resolve(c: HandlerClass): object | Promise<object>;
  close(): Promise<void>;
} {
  if (resolver === undefined)
    return { resolve: (c) => new (c as unknown as new () => object)(), close: async () => {} };
  if (typeof resolver === 'function') return { resolve: resolver, close: async () => {} };
  return { resolve: (c) => resolver.resolve(c), close: async () => resolver.close?.() };
}

function failed(problem: string): { readonly handlers: undefined; readonly problems: readonly string[] } {
  return { handlers: undefined, problems: [problem] };
}

function bindable(handlerClass: HandlerClass, left: HandlerClassDefinition): ClassHandlers {
  let bound: object | undefined;
  const definitions = left.methods.map((method) => methodDefinition(handlerClass, left.defaults, method, () => bound));
  return { handlerClass, definitions, bind: (instance) => void (bound = instance) };
}

function methodDefinition(
  handlerClass: HandlerClass,
  defaults: HandlerClassDefinition['defaults'],
  { method, source, options }: HandlerMethod,
  instance: () => object | undefined,
): HandlerDefinition {
  const { payload, codec, subscription, ...own } = options;
  const { subscription: classSubscription, ...shared } = defaults ?? {};
  const handle = (delivery: unknown): unknown => {
    const target = instance() as Record<string | symbol, (delivery: unknown) => unknown>;
    return target[method]?.(delivery);
  };
  return {
    kind: 'handler',
    name: `${handlerClass.name}.${String(method)}`,
    source,
    subscription: subscription ?? classSubscription ?? '',
    payload,
    codec,
    options: {
      ...shared,
      ...withoutAbsent(own),
      redelivery: { ...withoutAbsent(shared.redelivery), ...withoutAbsent(own.redelivery) },
    },
    handle: handle as HandlerFunction<never>,
  };
}

/** An option set to `undefined` is absent: it must not hide the class's default. */
function withoutAbsent<T extends object>(options: T | undefined): Partial<T> {
  return Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined)) as Partial<T>;
}
