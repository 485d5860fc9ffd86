// How payloads become bytes and back. A codec must be pure; what it throws on decode makes the message undecodable.

/** `T` is what a topic without a schema takes and gives. */
export interface Codec<T = unknown> {
  /** Short name for messages and reports, e.g. `json`. */
  readonly name: string;
  /** @throws when the value cannot be written: the publish is then refused for good. */
  encode(value: T): Uint8Array;
  /** @throws when the bytes cannot be read: the delivery is then dead-lettered as `undecodable`. */
  decode(bytes: Uint8Array): T;
}

const encoder = new TextEncoder();
/** Strict: bytes that are not UTF-8 are undecodable, never silently replaced. */
const decoder = new TextDecoder('utf-8', { fatal: true });
/** The same, keeping a byte order mark: in a text it is a character like any other. */
const exactDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** JSON in UTF-8; the default. `undefined` at the top and cyclic values cannot be encoded. */
export const jsonCodec: Codec = {
  name: 'json',
  encode(value) {
    const text = JSON.stringify(value) as string | undefined;
    if (text === undefined)
      throw new TypeError('a value without a JSON form (undefined, function or symbol) cannot be encoded');
    return encoder.encode(text);
  },
  decode: (bytes) => JSON.parse(decoder.decode(bytes)) as unknown,
};

/** UTF-8 text. */
export const textCodec: Codec<string> = {
  name: 'text',
  encode(value) {
    if (typeof (value as unknown) !== 'string')
      throw new TypeError(`the text codec takes a string, got ${typeof value}`);
    return encoder.encode(value);
  },
  decode: (bytes) => exactDecoder.decode(bytes),
};

/** Bytes as they are. */
export const bytesCodec: Codec<Uint8Array> = {
  name: 'bytes',
  encode(value) {
    if (!((value as unknown) instanceof Uint8Array))
      throw new TypeError(`the bytes codec takes a Uint8Array, got ${typeof value}`);
    return value;
  },
  decode: (bytes) => bytes,
};
