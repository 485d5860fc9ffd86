// A transport whose connection can be cut and comes back: what was unsettled is delivered again over the next
// connection, uncounted, with a higher connection number; calls made meanwhile are CONNECTION_LOST.
import { TransportError } from '../../src/index.js';
import type { ReceivedMessage } from '../../src/core/message.js';
import type { MessageId, Subscription, Transport } from '../../src/index.js';

type Report = Parameters<Subscription['onState']>[0];

export class CutTransport {
  readonly links: CutSubscription[] = [];
  /** Publishes fail in passing while it is set. */
  publishFails = false;
  /** Publishes get no answer while it is set. */
  publishHangs = false;
  readonly #inner: Transport;

  constructor(inner: Transport) {
    this.#inner = inner;
  }

  get transport(): Transport {
    const inner = this.#inner;
    return {
      name: 'cut',
      capabilities: inner.capabilities,
      maxMessageBytes: inner.maxMessageBytes,
      publisher: async (topic, options) => {
        const publisher = await inner.publisher(topic, options);
        return {
          topic: publisher.topic,
          nextSequenceId: () => publisher.nextSequenceId(),
          publish: (message, sequenceId) => {
            if (this.publishHangs) return new Promise(() => undefined);
            return this.publishFails ? Promise.reject(lost('publish')) : publisher.publish(message, sequenceId);
          },
          close: () => publisher.close(),
        };
      },
      close: () => inner.close(),
      subscribe: async (spec) => {
        const link = new CutSubscription(spec.topics, () => inner.subscribe(spec));
        await link.open();
        this.links.push(link);
        return link;
      },
    };
  }
}

export class CutSubscription implements Subscription {
  readonly #topics: readonly string[];
  readonly #subscribe: () => Promise<Subscription>;
  #inner: Subscription | undefined;
  #connection = 0;
  #report: Report = () => undefined;
  #keepsOrder = false;
  #paused = false;
  #closed = false;
  #opened: (() => void)[] = [];
  /** The next acknowledgement is done, its answer is lost together with the connection. */
  loseNextAnswer = false;
  /** The connection is lost when this message has been received and is not handed on yet. */
  losesWhileReceiving: ((message: ReceivedMessage) => boolean) | undefined;

  /** @param topics full names, without partitions. */
  constructor(topics: readonly string[], subscribe: () => Promise<Subscription>) {
    this.#topics = topics;
    this.#subscribe = subscribe;
  }

  async open(): Promise<void> {
    this.#inner = await this.#subscribe();
    this.#inner.onState(({ orderedNegativeAck = false }) => (this.#keepsOrder = orderedNegativeAck));
    if (this.#paused) this.#inner.pause();
    this.#connection += 1;
    this.#tell('connected');
    for (const opened of this.#opened.splice(0)) opened();
  }

  async cut(): Promise<void> {
    const inner = this.#inner;
    this.#inner = undefined;
    this.#tell('lost');
    await inner?.close();
  }

  async receive(signal: AbortSignal): ReturnType<Subscription['receive']> {
    for (;;) {
      if (this.#closed || signal.aborted) return undefined;
      const inner = this.#inner;
      if (inner === undefined) {
        await new Promise<void>((resolve) => {
          const done = (): void => {
            signal.removeEventListener('abort', done);
            resolve();
          };
          this.#opened.push(done);
          signal.addEventListener('abort', done, { once: true });
        });
        continue;
      }
      const connection = this.#connection;
      const message = await inner.receive(signal);
      if (message !== undefined && this.losesWhileReceiving?.(message) === true) {
        this.losesWhileReceiving = undefined;
        void this.cut();
        return { ...message, connection };
      }
      if (message !== undefined && inner === this.#inner) return { ...message, connection };
    }
  }

  async acknowledge(ids: readonly MessageId[]): Promise<void> {
    await this.#open('acknowledge').acknowledge(ids);
    if (!this.loseNextAnswer) return;
    this.loseNextAnswer = false;
    await this.cut();
    throw lost('acknowledge');
  }
  async acknowledgeCumulative(id: MessageId): Promise<void> {
    await this.#open('acknowledgeCumulative').acknowledgeCumulative(id);
  }
  async redeliver(ids: readonly MessageId[]): Promise<void> {
    await this.#open('redeliver').redeliver(ids);
  }
  negativeAcknowledgeOrdered(nacked: readonly MessageId[], returned: readonly MessageId[]): void {
    this.#inner?.negativeAcknowledgeOrdered?.(nacked, returned);
  }
  pause(): void {
    this.#paused = true;
    this.#inner?.pause();
  }
  resume(): void {
    this.#paused = false;
    this.#inner?.resume();
  }
  async seek(to: Parameters<Subscription['seek']>[0]): Promise<void> {
    await this.#open('seek').seek(to);
  }
  onState(report: Report): void {
    this.#report = report;
    this.#tell(this.#inner === undefined ? 'lost' : 'connected');
  }
  async close(): Promise<void> {
    this.#closed = true;
    for (const opened of this.#opened.splice(0)) opened();
    await this.#inner?.close();
  }

  #tell(state: 'connected' | 'lost'): void {
    const orderedNegativeAck = this.#keepsOrder;
    for (const topic of this.#topics) this.#report({ topic, connection: this.#connection, state, orderedNegativeAck });
  }

  #open(call: string): Subscription {
    if (this.#inner === undefined) throw lost(call);
    return this.#inner;
  }
}

function lost(call: string): TransportError {
  return new TransportError('CONNECTION_LOST', `${call}: the connection was lost`, { retriable: true });
}
