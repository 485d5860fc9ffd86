// Message and MessageId as the official client has them.
import type { MessageId as PortId, ReceivedMessage } from 'pulsework';
import type { OddBehaviours, Violations } from './odd-behaviours.js';

/** Numbers of a serialized id; `earliest` and `latest` have words instead. */
type Known = PortId | 'earliest' | 'latest';

export class StandInMessageId {
  readonly #odd: OddBehaviours;
  /** For the consumer of the stand-in. */
  readonly known: Known;
  /** Whether it came with a message: only then it knows its topic and its batch. */
  readonly live: boolean;

  constructor(known: Known, live: boolean, odd: OddBehaviours) {
    this.known = known;
    this.live = live;
    this.#odd = odd;
  }

  serialize(): Buffer {
    const id = this.known === 'earliest' || this.known === 'latest' ? noId() : this.known;
    const bytes = [1 << 3, ...varint(id.ledgerId), 2 << 3, ...varint(id.entryId)];
    if (id.partition >= 0) bytes.push(3 << 3, ...varint(id.partition));
    if (id.batchIndex >= 0) bytes.push(4 << 3, ...varint(id.batchIndex));
    if (id.batchSize > 0 && !this.#odd.hidesBatchSize) bytes.push(6 << 3, ...varint(id.batchSize));
    return Buffer.from(bytes);
  }

  toString(): string {
    const id = this.known === 'earliest' || this.known === 'latest' ? noId() : this.known;
    return `(${id.ledgerId},${id.entryId},${id.partition},${id.batchIndex})`;
  }
}

/** The statics of MessageId, which know what ends the process. */
export function messageIdStatics(violations: Violations, odd: OddBehaviours) {
  return {
    earliest: () => new StandInMessageId('earliest', false, odd),
    latest: () => new StandInMessageId('latest', false, odd),
    deserialize: (bytes: Buffer) => {
      if (!Buffer.isBuffer(bytes)) throw new Error('Expected buffer as first argument');
      const fields = fieldsOf(bytes);
      const ledgerId = fields?.get(1);
      const entryId = fields?.get(2);
      if (ledgerId === undefined || entryId === undefined) return violations.abort('MessageId.deserialize of garbage');
      const [partition = -1, batchIndex = -1] = [fields?.get(3), fields?.get(4)];
      return new StandInMessageId({ ledgerId, entryId, partition, batchIndex, batchSize: 0, topic: '' }, false, odd);
    },
  };
}

function noId(): PortId {
  return { ledgerId: -1, entryId: -1, partition: -1, batchIndex: -1, batchSize: 0, topic: '' };
}

export class StandInMessage {
  readonly #message: ReceivedMessage;
  readonly #id: StandInMessageId;

  constructor(message: ReceivedMessage, odd: OddBehaviours) {
    this.#message = message;
    this.#id = new StandInMessageId(message.id, true, odd);
  }

  getTopicName(): string {
    return this.#message.id.topic;
  }

  /** As the addon does it: fields of an array, set one by one. */
  getProperties(): unknown {
    const array: unknown[] = [];
    for (const [name, value] of Object.entries(this.#message.properties)) {
      (array as unknown as Record<string, unknown>)[name] = value;
    }
    return array;
  }

  getData(): Buffer {
    return Buffer.from(this.#message.payload ?? []);
  }

  getMessageId(): StandInMessageId {
    return this.#id;
  }

  getPublishTimestamp(): number {
    return this.#message.publishTimeMs;
  }

  getEventTimestamp(): number {
    return this.#message.eventTimeMs ?? 0;
  }

  getRedeliveryCount(): number {
    return this.#message.redeliveryCount;
  }

  getPartitionKey(): string {
    const { key } = this.#message;
    return key instanceof Uint8Array ? Buffer.from(key).toString('base64') : (key ?? '');
  }

  getOrderingKey(): string {
    return Buffer.from(this.#message.orderingKey ?? []).toString();
  }

  getProducerName(): string {
    return this.#message.producerName ?? '';
  }
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return [...bytes, Number(rest)];
}

/** Undefined where they are no fields of numbers. */
function fieldsOf(bytes: Buffer): Map<number, number> | undefined {
  const fields = new Map<number, number>();
  let at = 0;
  const next = (): number | undefined => {
    let value = 0n;
    for (let shift = 0n; at < bytes.length; shift += 7n) {
      const byte = bytes[at++] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return Number(BigInt.asIntN(64, value));
    }
    return undefined;
  };
  while (at < bytes.length) {
    const [tag, value] = [next(), next()];
    if (tag === undefined || value === undefined || (tag & 7) !== 0) return undefined;
    fields.set(tag >> 3, value);
  }
  return fields;
}
