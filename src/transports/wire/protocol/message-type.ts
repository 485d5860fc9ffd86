// Protobuf messages described as tables: one table gives the TypeScript type, the writer and the reader. Small on
// purpose: Pulsar uses proto2 with these few kinds of values, and the commands of each message on the hot path go
// through here 300,000 times a second.
import { ProtoReader } from './proto-reader.js';
import type { WireType } from './proto-reader.js';
import type { ProtoWriter } from './proto-writer.js';
import { WireFormatError } from './wire-format-error.js';

/** How one kind of value is written and read. */
export interface Kind<T> {
  readonly wireType: WireType;
  write(writer: ProtoWriter, value: T): void;
  read(reader: ProtoReader): T;
}

type Presence = 'required' | 'optional' | 'repeated';

export interface Field<T, P extends Presence> {
  readonly tag: number;
  readonly presence: P;
  readonly kind: Kind<T>;
}

type Fields = Readonly<Record<string, Field<never, Presence> | Field<unknown, Presence>>>;
type ValueOf<F> = F extends Field<infer T, Presence> ? T : never;
type KeysWith<F, P extends Presence> = { [K in keyof F]: F[K] extends { readonly presence: P } ? K : never }[keyof F];

/** The TypeScript type of a message: required fields are there, the others may be absent. */
export type MessageOf<F> = { readonly [K in KeysWith<F, 'required'>]: ValueOf<F[K]> } & {
  readonly [K in KeysWith<F, 'optional'>]?: ValueOf<F[K]> | undefined;
} & { readonly [K in KeysWith<F, 'repeated'>]?: readonly ValueOf<F[K]>[] | undefined };

export const bool: Kind<boolean> = {
  wireType: 0,
  write: (writer, value) => writer.long(value ? 1 : 0),
  read: (reader) => reader.bool(),
};
export const int32: Kind<number> = {
  wireType: 0,
  write: (writer, value) => writer.long(value),
  read: (reader) => reader.int32(),
};
export const uint32: Kind<number> = { ...int32, read: (reader) => reader.uint32() };
/** 64-bit numbers within 2^53-1, and -1 as 2^64-1; Infinity is written as 2^63-1. */
export const long: Kind<number> = { ...int32, read: (reader) => reader.long() };
/** 64-bit numbers of others that may be larger: they are only shown, or whoever gets them refuses them by name. */
export const nearestLong: Kind<number> = { ...int32, read: (reader) => reader.nearestLong() };
/** 64-bit numbers whose bits count (ack sets, transaction ids); signed. */
export const bits64: Kind<bigint> = {
  wireType: 0,
  write: (writer, value) => writer.bigint(value),
  read: (reader) => reader.bigint(),
};
export const double: Kind<number> = {
  wireType: 1,
  write: (writer, value) => writer.double(value),
  read: (reader) => reader.double(),
};
export const string: Kind<string> = {
  wireType: 2,
  write: (writer, value) => writer.string(value),
  read: (reader) => reader.string(),
};
/** Read as a view of the buffer it came in: copy what is kept. */
export const bytes: Kind<Uint8Array> = {
  wireType: 2,
  write: (writer, value) => writer.bytes(value),
  read: (reader) => reader.view(),
};

export const required = <T>(tag: number, kind: Kind<T>): Field<T, 'required'> => ({ tag, presence: 'required', kind });
export const optional = <T>(tag: number, kind: Kind<T>): Field<T, 'optional'> => ({ tag, presence: 'optional', kind });
export const repeated = <T>(tag: number, kind: Kind<T>): Field<T, 'repeated'> => ({ tag, presence: 'repeated', kind });

interface Column {
  readonly name: string;
  readonly key: number;
  readonly presence: Presence;
  readonly kind: Kind<unknown>;
}

/** A message of a fixed shape. As a kind it is a field of other messages. */
export class MessageType<T extends object> implements Kind<T> {
  readonly wireType = 2;
  readonly name: string;
  readonly #byName: ReadonlyMap<string, Column>;
  /** By field number. */
  readonly #byTag: readonly (Column | undefined)[];
  readonly #required: readonly string[];

  /** Use `messageType`, which infers `T`. */
  constructor(name: string, fields: Fields) {
    this.name = name;
    const columns = Object.entries(fields).map(([field, { tag, presence, kind }]) => ({
      name: field,
      key: ((tag << 3) | kind.wireType) >>> 0,
      presence,
      kind: kind,
    }));
    this.#byName = new Map(columns.map((column) => [column.name, column]));
    const byTag: (Column | undefined)[] = [];
    for (const column of columns) byTag[column.key >>> 3] = column;
    this.#byTag = Array.from(byTag);
    this.#required = columns.filter(({ presence }) => presence === 'required').map(({ name: field }) => field);
  }

  write(writer: ProtoWriter, value: T): void {
    const start = writer.beginLength();
    this.writeFields(writer, value);
    writer.endLength(start);
  }

  read(reader: ProtoReader): T {
    const end = reader.lengthEnd();
    const message = this.decode(reader.bytes, reader.position, end);
    reader.position = end;
    return message;
  }

  /** Writes the fields without a length before them. */
  writeFields(writer: ProtoWriter, message: T): void {
    const values = message as Readonly<Record<string, unknown>>;
    for (const name in values) {
      const value = values[name];
      if (value === undefined) continue;
      const column = this.#byName.get(name);
      if (column === undefined) continue;
      const { key, kind } = column;
      if (column.presence === 'repeated') {
        for (const item of value as readonly unknown[]) {
          writer.long(key);
          kind.write(writer, item);
        }
      } else {
        writer.long(key);
        kind.write(writer, value);
      }
    }
  }

  /** @throws WireFormatError naming the message, the field and what is wrong. */
  decode(source: Buffer, start = 0, end = source.length): T {
    const reader = new ProtoReader(source, start, end);
    const message: Record<string, unknown> = {};
    while (!reader.atEnd) this.#readField(reader, message);
    for (const name of this.#required) {
      if (message[name] === undefined) throw new WireFormatError(`${this.name} has no ${name}`);
    }
    return message as T;
  }

  #readField(reader: ProtoReader, message: Record<string, unknown>): void {
    let name = 'a field';
    try {
      const key = reader.key();
      const column = this.#byTag[key >>> 3];
      if (column === undefined) return reader.skipField(key & 7);
      ({ name } = column);
      if (column.presence !== 'repeated') {
        if (column.key !== key) throw new WireFormatError(`wire type ${key & 7}`);
        message[name] = column.kind.read(reader);
      } else readRepeated(reader, column, key, (message[name] ??= []) as unknown[]);
    } catch (error) {
      if (!(error instanceof WireFormatError)) throw error;
      throw new WireFormatError(`${this.name}.${name}: ${error.message}`);
    }
  }
}

/** One element, or a packed list of numbers: readers of proto2 must take both. */
function readRepeated(reader: ProtoReader, column: Column, key: number, list: unknown[]): void {
  if (column.key === key) {
    list.push(column.kind.read(reader));
    return;
  }
  if ((key & 7) !== 2) throw new WireFormatError(`wire type ${key & 7}`);
  const end = reader.lengthEnd();
  const packed = new ProtoReader(reader.bytes, reader.position, end);
  while (!packed.atEnd) list.push(column.kind.read(packed));
  reader.position = end;
}

/** Describes a message; `name` is its name in errors. */
export function messageType<const F extends Fields>(name: string, fields: F): MessageType<MessageOf<F>> {
  return new MessageType<MessageOf<F>>(name, fields);
}

/** The TypeScript type of what a MessageType reads and writes. */
export type Decoded<M> = M extends MessageType<infer T> ? T : never;
