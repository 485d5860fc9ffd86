// `@Subscribe`: makes a method the handler of a source, and lets the compiler compare the two.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { ConfigurationError } from '../src/index.js';
import type {
  BatchHandlerFunction,
  BatchOptions,
  HandlerFunction,
  HandlerOptions,
  PayloadOf,
  Source,
  SourceCodec,
  SourcePayload,
} from '../src/index.js';
import { recordMethod } from './class-record.js';

/** The options of one handler method; what is absent comes from the class's `@Handler`. */
export interface SubscribeOptions extends HandlerOptions {
  /** The subscription's name. @default that of `@Handler` */
  readonly subscription?: string | undefined;
  /** Makes the method a batch handler: it gets `readonly Delivery<Payload>[]` and returns one outcome for all or one each. */
  readonly batch?: BatchOptions | undefined;
}

/** The same where the method takes one delivery. */
type SingleOptions = SubscribeOptions & { readonly batch?: undefined };
type BatchSubscribeOptions = SubscribeOptions & { readonly batch: BatchOptions };

/**
 * Fits methods of an instance that take a `Delivery<Payload>` (or nothing) and always give an Outcome. The descriptor
 * carries the method's type; a static method is kept out by `prototype`, which only classes have.
 */
export type HandlerMethodDecorator<Payload> = <Method extends HandlerFunction<Payload>>(
  prototype: object & { readonly prototype?: never },
  method: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/** The same for methods that take `readonly Delivery<Payload>[]` and give one outcome for all or one each. */
export type BatchMethodDecorator<Payload> = <Method extends BatchHandlerFunction<Payload>>(
  prototype: object & { readonly prototype?: never },
  method: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/**
 * Makes a method the handler of `source`: a topic, a list of topics, a topic name or `{ pattern }`. The payload's type
 * follows from the topics, or from the schema in `payload` where the source is a name or a pattern; without one it is
 * `unknown`. With `batch` the method takes a list of deliveries. Several `@Subscribe` on one method are several handlers.
 *
 * @throws ConfigurationError when it is not on a method, or the code was compiled without `experimentalDecorators`.
 */
export function Subscribe<Schema extends StandardSchemaV1>(
  source: string | { readonly pattern: RegExp },
  options: BatchSubscribeOptions & SourcePayload<Schema> & { readonly payload: Schema },
): BatchMethodDecorator<StandardSchemaV1.InferOutput<Schema>>;
export function Subscribe<const S extends Source, T = unknown>(
  source: S,
  options: BatchSubscribeOptions & SourceCodec<T>,
): BatchMethodDecorator<PayloadOf<S, T>>;
export function Subscribe<Schema extends StandardSchemaV1>(
  source: string | { readonly pattern: RegExp },
  options: SingleOptions & SourcePayload<Schema> & { readonly payload: Schema },
): HandlerMethodDecorator<StandardSchemaV1.InferOutput<Schema>>;
// The most common form is the last: it is the one that the compiler explains when none fits.
export function Subscribe<const S extends Source, T = unknown>(
  source: S,
  options?: SingleOptions & SourceCodec<T>,
): HandlerMethodDecorator<PayloadOf<S, T>>;
export function Subscribe(
  source: Source,
  options: SubscribeOptions & SourcePayload = {},
): HandlerMethodDecorator<never> & BatchMethodDecorator<never> {
  return (prototype: object, method: string | symbol, descriptor: unknown) => {
    // A compiler without the flag calls with two arguments: a record made of those would name no class and no method.
    if (descriptor === undefined) throw notOnMethod(method);
    recordMethod(typeof prototype === 'function' ? prototype : prototype.constructor, { method, source, options });
  };
}

function notOnMethod(method: unknown): ConfigurationError {
  const place = typeof method === 'string' ? ` on ${JSON.stringify(method)}` : '';
  return new ConfigurationError([
    `@Subscribe${place} must be on a method and compiled as a legacy decorator: set "experimentalDecorators": true in the tsconfig.json that includes the file, or use defineHandler(); tsx reads the tsconfig.json of the folder it is started in, or the one given with --tsconfig`,
  ]);
}
