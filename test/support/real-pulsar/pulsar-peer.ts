// What an outside Pulsar client can be asked to do, the same for the Java and the Python one. Payloads and ordering keys
// are bytes here and base64 on the pipe.
import type { Peer } from './peer.js';

export interface PeerMessage {
  /** null is a message without a value. */
  readonly value: Uint8Array | string | null;
  readonly key?: string | undefined;
  /** Instead of `key`. Java only. */
  readonly keyBytes?: Uint8Array | undefined;
  readonly orderingKey?: Uint8Array | string | undefined;
  readonly properties?: Readonly<Record<string, string>> | undefined;
  readonly eventTimeMs?: number | undefined;
  readonly deliverAfterMs?: number | undefined;
  readonly sequenceId?: number | undefined;
}

export interface PeerProducerOptions {
  /** `by-key` makes one batch for each key. All messages of one call go out together. @default 'off' */
  readonly batching?: 'off' | 'on' | 'by-key' | undefined;
  /** Messages in a batch at most. @default 1000 */
  readonly batchSize?: number | undefined;
  /** @default 'none' */
  readonly compression?: 'none' | 'lz4' | 'zlib' | 'zstd' | 'snappy' | undefined;
  /** Splits a message that is larger into chunks. @default no chunks */
  readonly chunkBytes?: number | undefined;
  readonly producerName?: string | undefined;
  /** Java only, in Java's words. @default 'Shared' */
  readonly accessMode?: 'Shared' | 'Exclusive' | 'ExclusiveWithFencing' | undefined;
  /** Java only: registers it, `json` with the text `id` and the whole number `amount`. @default none */
  readonly schema?: 'json' | 'string' | undefined;
  /** Python only: `java` chooses partitions as Java does. @default the client's own way */
  readonly routing?: 'java' | undefined;
}

export interface PeerSubscriptionOptions {
  readonly subscription: string;
  /** @default 'exclusive' */
  readonly type?: 'exclusive' | 'failover' | 'shared' | 'key-shared' | undefined;
  readonly consumerName?: string | undefined;
  /** @default 'earliest' */
  readonly initialPosition?: 'earliest' | 'latest' | undefined;
  /** @default 1000 */
  readonly receiverQueueSize?: number | undefined;
  /** Acknowledges single messages of a batch at the broker. @default true */
  readonly batchIndexAck?: boolean | undefined;
  /** Waits for the broker's answer to an acknowledgement. @default true; Java only */
  readonly ackReceipt?: boolean | undefined;
  /** @default 60000 */
  readonly negativeAckDelayMs?: number | undefined;
  readonly deadLetter?: { readonly maxRedeliverCount: number; readonly topic?: string | undefined } | undefined;
  /** Java only. @default false */
  readonly enableRetry?: boolean | undefined;
}

export interface PeerReceived {
  /** The number by which the peer knows it, for `acknowledge` and the like. */
  readonly number: number;
  readonly id: string;
  readonly topic: string;
  readonly partition: number;
  readonly batchIndex: number;
  readonly value: Buffer | null;
  /** Base64 where the producer gave bytes. */
  readonly key: string | null;
  /** Only where the producer gave bytes. Not known to Python. */
  readonly keyBytes: Buffer | null;
  readonly orderingKey: Buffer | null;
  readonly properties: Readonly<Record<string, string>>;
  readonly eventTimeMs: number;
  readonly publishTimeMs: number;
  readonly redeliveryCount: number;
  readonly producerName: string | null;
  /** Not known to Python. */
  readonly sequenceId: number | null;
}

export interface PeerSent {
  readonly id: string;
  readonly partition: number;
}

/** One client library in a process of its own, for brokers at any address. */
export class PulsarPeer {
  readonly #peer: Peer;
  readonly #opened = new Set<{ close(): Promise<void> }>();

  constructor(peer: Peer) {
    this.#peer = peer;
  }

  get name(): string {
    return this.#peer.name;
  }

  async produce(
    serviceUrl: string,
    topic: string,
    messages: readonly PeerMessage[],
    options: PeerProducerOptions = {},
  ): Promise<readonly PeerSent[]> {
    const encoded = messages.map((message) => ({
      ...message,
      value: message.value === null ? null : base64(message.value),
      keyBytes: message.keyBytes === undefined ? undefined : base64(message.keyBytes),
      orderingKey: message.orderingKey === undefined ? undefined : base64(message.orderingKey),
    }));
    return (await this.#peer.request('produce', { serviceUrl, topic, messages: encoded, ...options })) as PeerSent[];
  }

  /** A producer that stays until it is closed. Java only. */
  async openProducer(
    serviceUrl: string,
    topic: string,
    options: PeerProducerOptions = {},
  ): Promise<{ close(): Promise<void> }> {
    const producer = (await this.#peer.request('open-producer', { serviceUrl, topic, ...options })) as number;
    return this.#keep((closed) => ({
      close: async () => {
        closed();
        await this.#peer.request('close-producer', { producer });
      },
    }));
  }

  /** The same in one transaction, which is committed or aborted at the end. Java only. */
  async produceInTransaction(
    serviceUrl: string,
    topic: string,
    messages: readonly { readonly value: string }[],
    commit: boolean,
  ): Promise<void> {
    const encoded = messages.map(({ value }) => ({ value: base64(value) }));
    await this.#peer.request('produce-in-transaction', { serviceUrl, topic, messages: encoded, commit });
  }

  async subscribe(
    serviceUrl: string,
    topics: string | readonly string[],
    options: PeerSubscriptionOptions,
  ): Promise<PeerConsumer> {
    const fields = { serviceUrl, topics: typeof topics === 'string' ? [topics] : topics, ...options };
    const consumer = (await this.#peer.request('subscribe', fields)) as number;
    return this.#keep((closed) => new PeerConsumer(this.#peer, consumer, closed));
  }

  /** Everything a topic holds now, in order, without a subscription that stays. */
  async readAll(serviceUrl: string, topic: string): Promise<readonly PeerReceived[]> {
    return decoded(await this.#peer.request('read-all', { serviceUrl, topic }));
  }

  /** The same, each decoded by a schema, and the version in hex of the one that it was written by. Java only. */
  async readValues(
    serviceUrl: string,
    topic: string,
    schema: 'json' | 'string',
  ): Promise<readonly { readonly value: unknown; readonly schemaVersion: string | null }[]> {
    const answer = await this.#peer.request('read-values', { serviceUrl, topic, schema });
    return answer as readonly { readonly value: unknown; readonly schemaVersion: string | null }[];
  }

  /** The partition to which the client routes a key. Java only. */
  async partitionOf(key: string, partitions: number): Promise<number> {
    return (await this.#peer.request('partition-of', { key, partitions })) as number;
  }

  /** The same process, with consumers and producers that are closed apart from those of this one. */
  another(): PulsarPeer {
    return new PulsarPeer(this.#peer);
  }

  /** What was opened here and not closed; a broker that has gone is no hindrance. */
  async closeOpened(): Promise<void> {
    await Promise.allSettled([...this.#opened].map((each) => each.close()));
  }

  /** Closes its clients and ends the process. */
  close(): Promise<void> {
    return this.#peer.close();
  }

  #keep<T extends { close(): Promise<void> }>(open: (closed: () => void) => T): T {
    const opened = open(() => this.#opened.delete(opened));
    this.#opened.add(opened);
    return opened;
  }
}

export class PeerConsumer {
  readonly #peer: Peer;
  readonly #consumer: number;
  readonly #closed: () => void;

  /** @param closed called once it is to be closed. */
  constructor(peer: Peer, consumer: number, closed: () => void) {
    this.#peer = peer;
    this.#consumer = consumer;
    this.#closed = closed;
  }

  /** Up to `count` messages; fewer when no further one came for `quietMs`. */
  async receive(count: number, quietMs = 15_000): Promise<readonly PeerReceived[]> {
    return decoded(await this.#ask('receive', { count, quietMs }));
  }

  async acknowledge(messages: readonly PeerReceived[]): Promise<void> {
    await this.#ask('acknowledge', { numbers: numbersOf(messages) });
  }

  async acknowledgeCumulative(message: PeerReceived): Promise<void> {
    await this.#ask('acknowledge-cumulative', { numbers: [message.number] });
  }

  async negativeAcknowledge(messages: readonly PeerReceived[]): Promise<void> {
    await this.#ask('negative-acknowledge', { numbers: numbersOf(messages) });
  }

  /** Java only; needs `enableRetry`. */
  async reconsumeLater(
    messages: readonly PeerReceived[],
    delayMs: number,
    properties: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    await this.#ask('reconsume-later', { numbers: numbersOf(messages), delayMs, properties });
  }

  /** The subscription stays. */
  async close(): Promise<void> {
    this.#closed();
    await this.#ask('close-consumer');
  }

  #ask(command: string, fields: object = {}): Promise<unknown> {
    return this.#peer.request(command, { consumer: this.#consumer, ...fields });
  }
}

interface EncodedReceived extends Omit<PeerReceived, 'value' | 'keyBytes' | 'orderingKey'> {
  readonly value: string | null;
  readonly keyBytes: string | null;
  readonly orderingKey: string | null;
}

function decoded(answer: unknown): readonly PeerReceived[] {
  return (answer as readonly EncodedReceived[]).map((message) => ({
    ...message,
    value: message.value === null ? null : Buffer.from(message.value, 'base64'),
    keyBytes: message.keyBytes === null ? null : Buffer.from(message.keyBytes, 'base64'),
    orderingKey: message.orderingKey === null ? null : Buffer.from(message.orderingKey, 'base64'),
  }));
}

function numbersOf(messages: readonly PeerReceived[]): readonly number[] {
  return messages.map(({ number }) => number);
}

function base64(bytes: Uint8Array | string): string {
  return Buffer.from(bytes).toString('base64');
}
