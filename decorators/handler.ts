// `@Handler`: marks a class whose methods handle deliveries, and holds their defaults.
import type { HandlerClass, HandlerOptions } from '../src/index.js';
import { recordDefaults } from './class-record.js';

/** Defaults of all handler methods of a class; what a method's `@Subscribe` sets wins, option by option. */
export interface HandlerClassDefaults extends HandlerOptions {
  /** The subscription's name for every method that does not name its own. */
  readonly subscription?: string | undefined;
}

/**
 * Marks a class for `Runtime.start({ handlers: [...] })`. Nothing is checked here: all problems of all handlers are
 * reported together when the runtime starts. A subclass has its parents' handler methods too, but needs its own
 * `@Handler`: subscriptions and limits are never inherited unseen.
 *
 * Needs `"experimentalDecorators": true` in tsconfig.json; `emitDecoratorMetadata` is not needed.
 */
export function Handler(defaults: HandlerClassDefaults = {}): (handlerClass: HandlerClass) => void {
  return (handlerClass) => recordDefaults(handlerClass, defaults);
}
