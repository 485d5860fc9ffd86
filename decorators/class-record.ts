// The record that decorators leave on a class. Each class has its own: what a subclass adds never reaches its parent.
import { HANDLER_CLASS } from '../src/index.js';
import type { HandlerClassDefinition, HandlerMethod } from '../src/index.js';

const EMPTY: HandlerClassDefinition = { defaults: undefined, methods: [] };

export function recordDefaults(handlerClass: object, defaults: HandlerClassDefinition['defaults']): void {
  leave(handlerClass, { defaults, methods: recordOf(handlerClass).methods });
}

/** Replaces what a parent recorded for the method; several decorators on one method add up. */
export function recordMethod(handlerClass: object, added: HandlerMethod): void {
  const inherited = recordOf(Reflect.getPrototypeOf(handlerClass)).methods;
  const kept = recordOf(handlerClass).methods.filter(
    (known) => known.method !== added.method || !inherited.includes(known),
  );
  // Method decorators run before the class's own, so any defaults found here would be the parent's.
  leave(handlerClass, { defaults: undefined, methods: [...kept, added] });
}

/** The class's own record, else the nearest parent's. */
function recordOf(handlerClass: { readonly [HANDLER_CLASS]?: HandlerClassDefinition } | null): HandlerClassDefinition {
  return handlerClass?.[HANDLER_CLASS] ?? EMPTY;
}

function leave(handlerClass: object, record: HandlerClassDefinition): void {
  Object.defineProperty(handlerClass, HANDLER_CLASS, { value: record, configurable: true });
}
