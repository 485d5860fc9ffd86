// Entry point `pulsework/inversify`: handler classes made by an inversify container. A child container holds what is
// bound for the handlers, so that closing a runtime undoes that and nothing of the user's.
import { Container } from 'inversify';
import type { AbstractNewable } from 'inversify';
import { ConfigurationError, PulseworkError } from '../src/index.js';
import type { HandlerClass, HandlerResolver } from '../src/index.js';

/** What inversify puts on errors about bindings and decorators, as opposed to those thrown by constructors. */
const INVERSIFY_ERROR = Symbol.for('@inversifyjs/core/InversifyCoreError');

/**
 * For `Runtime.start({ resolve: inversifyResolver(container) })`. A handler class that is not bound in `container` (or
 * above it) is bound as a singleton of this runtime; one that is bound is taken as it is bound. Each is resolved once,
 * asynchronous dependencies included. When the runtime closes, what was bound here is unbound and deactivated (`@preDestroy`,
 * `onDeactivation`); `container` stays as it was. Make one resolver per runtime.
 *
 * Resolving fails with a ConfigurationError where bindings or decorators are missing, with a PulseworkError START_FAILED
 * where a constructor or an asynchronous dependency failed.
 */
export function inversifyResolver(container: Container): HandlerResolver {
  const child = new Container({ parent: container });
  const instances = new Map<HandlerClass, Promise<object>>();
  return {
    resolve(handlerClass) {
      const instance = instances.get(handlerClass) ?? instanceOf(handlerClass, child);
      instances.set(handlerClass, instance);
      return instance;
    },
    async close() {
      instances.clear();
      await child.unbindAllAsync();
    },
  };
}

async function instanceOf(handlerClass: HandlerClass, child: Container): Promise<object> {
  // As a token: the class itself may be abstract, where the container binds it to another one.
  const token = handlerClass as AbstractNewable<object>;
  try {
    if (!child.isBound(token)) child.bind(token).toSelf().inSingletonScope();
    return await child.getAsync(token);
  } catch (error) {
    throw notMade(handlerClass, error);
  }
}

function notMade(handlerClass: HandlerClass, error: unknown): PulseworkError {
  const subject = `handler class ${handlerClass.name}`;
  const said = firstLine(error);
  if (typeof error === 'object' && error !== null && INVERSIFY_ERROR in error) {
    const remedy =
      'bind every dependency in the container given to inversifyResolver(), and put @injectable() on the class and @inject(token) on each constructor parameter';
    return new ConfigurationError([`${subject}: inversify cannot make it: ${said} Remedy: ${remedy}`]);
  }
  return new PulseworkError('START_FAILED', `${subject} could not be made: ${said}`, { cause: error });
}

/** inversify explains over many lines; the first one names the binding. */
function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split('\n', 1)[0] ?? text;
}
