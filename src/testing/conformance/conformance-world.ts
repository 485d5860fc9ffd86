// What the cases of the conformance suite talk to: topics, publishers and subscriptions on a harness, waiting that works
// in virtual and in real time alike, and an end that leaves nothing open.
import type { AccessMode } from '../../core/access-mode.js';
import type { EncodedMessage, ReceivedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import type { SubscriptionSpec } from '../../core/subscription-spec.js';
import type { Clock } from '../../ports/clock.js';
import type { Transaction, TransactionOptions } from '../../ports/transaction.js';
import type { Publisher, Transport } from '../../ports/transport.js';
import type { ConformanceHarness, OptionalMember, SubscriptionFigures } from './conformance-case.js';
import { ConformanceFailure } from './expectations.js';
import { TestSubscription } from './test-subscription.js';

/** How long something that must happen may take: three times what an overloaded machine needed. */
const PATIENCE_MS = 20_000;
/** A broker that starts has more to do. */
const RESTART_PATIENCE_MS = 120_000;
/** How often it is looked whether it happened: more often at first, since most things happen at once. */
const FIRST_STEPS_MS = 1;
const STEP_MS = 10;

/** A text stands for a message with that payload and nothing else. */
export type TestMessage = string | Partial<EncodedMessage>;

/** What a case wants of a subscription; the rest is the same everywhere. */
export type TestSubscriptionOptions = Partial<Omit<SubscriptionSpec, 'topics'>> & {
  /** A client of its own, as another process has it. @default the one of the world */
  readonly transport?: Transport | undefined;
};

export class ConformanceWorld {
  readonly #harness: ConformanceHarness;
  readonly #transports: Transport[] = [];
  readonly #publishers = new Map<string, Promise<Publisher>>();
  #main: Promise<Transport> | undefined;
  #consumers = 0;

  constructor(harness: ConformanceHarness) {
    this.#harness = harness;
  }

  get clock(): Clock {
    return this.#harness.clock;
  }

  /** The transport that is used where a case does not say which. */
  transport(): Promise<Transport> {
    return (this.#main ??= this.newTransport());
  }

  async newTransport(): Promise<Transport> {
    const transport = await this.#harness.newTransport();
    this.#transports.push(transport);
    return transport;
  }

  /** Full name of a topic that nobody else uses. */
  newTopic(partitions = 0): Promise<string> {
    return this.#harness.newTopic(partitions);
  }

  elapse(ms: number): Promise<void> {
    return this.#harness.elapse(ms);
  }

  /** Publishes one after the other and gives the receipts. */
  async publish(topic: string, ...messages: readonly TestMessage[]): Promise<MessageId[]> {
    const publisher = await this.publisher(topic);
    const ids: MessageId[] = [];
    for (const message of messages) {
      const publishing = publisher.publish(encoded(message), publisher.nextSequenceId());
      ids.push(await this.until(publishing, 'the receipt of a publish'));
    }
    return ids;
  }

  /** Of the transport of the world. Only for cases that need 'transactions'. */
  async begin(options?: TransactionOptions): Promise<Transaction> {
    const transport = await this.transport();
    if (transport.newTransaction === undefined) throw new ConformanceFailure('a case with transactions must need them');
    return this.until(transport.newTransaction(options), 'a new transaction');
  }

  /** As parts of `transaction`, one after the other. Gives the receipts. */
  async publishIn(
    transaction: Transaction,
    topic: string,
    ...messages: readonly TestMessage[]
  ): Promise<readonly MessageId[]> {
    const publisher = await this.publisher(topic);
    const ids: MessageId[] = [];
    for (const message of messages) {
      const publishing = publisher.publish(encoded(message), publisher.nextSequenceId(), { transaction });
      ids.push(await this.until(publishing, 'the receipt of a publish in a transaction'));
    }
    return ids;
  }

  /** Until its outcome is decided; readers see it within moments. */
  async commit(transaction: Transaction): Promise<void> {
    await this.until(transaction.commit(), 'a commit');
  }

  async abort(transaction: Transaction): Promise<void> {
    await this.until(transaction.abort(), 'an abort');
  }

  /** Only for cases that need 'statistics': what is committed is acknowledged within moments. */
  async backlogIs(topic: string, backlog: number, subscription = 's'): Promise<void> {
    const left = async (): Promise<boolean> => (await this.figures(topic, subscription)).backlog === backlog;
    await this.eventually(left, `a backlog of ${backlog}`);
  }

  /** One publisher per topic, so that order and sequence ids are one producer's. */
  publisher(topic: string): Promise<Publisher> {
    const known = this.#publishers.get(topic);
    if (known !== undefined) return known;
    const made = this.transport().then((transport) => transport.publisher(topic));
    this.#publishers.set(topic, made);
    return made;
  }

  /** Publishes the messages as one entry. Only for cases that need 'producer-batches'. */
  publishBatch(topic: string, ...messages: readonly TestMessage[]): Promise<readonly MessageId[]> {
    return this.#able('publishBatch')(topic, messages.map(encoded));
  }

  /** Publishes the message in chunks. Only for cases that need 'producer-chunks'. */
  publishChunked(topic: string, message: TestMessage, maxChunkBytes: number): Promise<MessageId> {
    const publishing = this.#able('publishChunked')(topic, encoded(message), maxChunkBytes);
    return this.until(publishing, 'the receipt of a message in chunks');
  }

  /** Only for cases that need 'statistics'. */
  figures(topic: string, subscription = 's'): Promise<SubscriptionFigures> {
    return this.#able('statistics')(topic, subscription);
  }

  /** Only for cases that need 'unload'. */
  async unload(topic: string): Promise<void> {
    await this.until(this.#able('unload')(topic), 'the unload of a topic');
  }

  /** Only for cases that need 'terminate'. */
  terminate(topic: string): Promise<MessageId> {
    return this.until(this.#able('terminate')(topic), 'the termination of a topic');
  }

  /** Only for cases that need 'grow'. */
  async grow(topic: string, partitions: number): Promise<void> {
    await this.until(this.#able('grow')(topic, partitions), 'more partitions');
  }

  /** Only for cases that need 'deduplicate'. */
  async deduplicate(topic: string): Promise<void> {
    await this.until(this.#able('deduplicate')(topic), 'deduplication');
  }

  /** Only for cases that need 'expire'. */
  async expire(topic: string, olderThanMs: number, subscription = 's'): Promise<void> {
    await this.until(this.#able('expire')(topic, subscription, olderThanMs), 'the expiry of messages');
  }

  /** False when it was refused. Only for cases that need 'delete-subscription'. */
  deleteSubscription(topic: string, subscription = 's'): Promise<boolean> {
    return this.until(this.#able('deleteSubscription')(topic, subscription), 'the deletion of a subscription');
  }

  /** Only for cases that need 'delete-topic'. */
  async deleteTopic(topic: string): Promise<void> {
    await this.until(this.#able('deleteTopic')(topic), 'the deletion of a topic');
  }

  /**
   * A publisher on a client of its own unless `transport` says which, as another process has it. Only for cases that need
   * 'access-modes'.
   */
  async publisherAs(topic: string, mode: AccessMode, transport?: Transport): Promise<Publisher> {
    return this.#able('publisherAs')(transport ?? (await this.newTransport()), topic, mode);
  }

  /** Only for cases that need 'restart'. */
  async restart(): Promise<void> {
    await this.until(this.#able('restart')(), 'the restart of the broker', RESTART_PATIENCE_MS);
  }

  readDeadLetters(topic: string, subscription: string): Promise<readonly ReceivedMessage[]> {
    return this.#harness.readDeadLetters(topic, subscription);
  }

  /** Opens subscription `s`, Shared, from the earliest message on, with room for 100, unless `options` say otherwise. */
  async subscribe(
    topics: string | readonly string[],
    options: TestSubscriptionOptions = {},
  ): Promise<TestSubscription> {
    const { transport, ...rest } = options;
    const client = transport ?? (await this.transport());
    const subscription = await client.subscribe({
      topics: typeof topics === 'string' ? [topics] : topics,
      subscription: 's',
      type: 'shared',
      initialPosition: 'earliest',
      prefetch: 100,
      consumerName: `consumer-${(this.#consumers += 1)}`,
      ...rest,
    });
    return new TestSubscription(this, subscription);
  }

  /** What `promise` gives. @throws ConformanceFailure naming `what` when it does not come in time. */
  async until<T>(promise: Promise<T>, what: string, withinMs = PATIENCE_MS): Promise<T> {
    if (await this.comes(promise, withinMs)) return promise;
    throw new ConformanceFailure(`${what}: nothing within ${withinMs} ms`);
  }

  /** Whether `promise` settles within `withinMs`. */
  async comes(promise: Promise<unknown>, withinMs: number): Promise<boolean> {
    let settled = false;
    const settle = (): void => void (settled = true);
    promise.then(settle, settle);
    const isSettled = (): boolean => settled;
    await this.elapse(0);
    for (let waited = 0; waited < withinMs && !isSettled();) {
      const step = waited < STEP_MS ? FIRST_STEPS_MS : STEP_MS;
      await this.elapse(step);
      waited += step;
    }
    return isSettled();
  }

  /** Looks again until `look` says true. @throws ConformanceFailure naming `what`. */
  async eventually(look: () => boolean | Promise<boolean>, what: string): Promise<void> {
    const begunMs = this.clock.now();
    while (!(await look())) {
      if (this.clock.now() - begunMs > PATIENCE_MS)
        throw new ConformanceFailure(`${what}: not within ${PATIENCE_MS} ms`);
      await this.elapse(STEP_MS);
    }
  }

  /** What of the harness a case must have named in `needs`. */
  #able<K extends OptionalMember>(member: K): NonNullable<ConformanceHarness[K]> {
    const able = this.#harness[member];
    if (able === undefined) throw new ConformanceFailure(`a case that uses ${member} must need it`);
    return able;
  }

  /** Ends everything that the case has opened. */
  async close(): Promise<void> {
    const closing = Promise.allSettled(this.#transports.map((transport) => transport.close()));
    await this.until(closing, 'closing the transports');
  }
}

const encoder = new TextEncoder();

function encoded(message: TestMessage): EncodedMessage {
  if (typeof message === 'string') return { payload: encoder.encode(message), properties: {} };
  return { payload: encoder.encode(''), properties: {}, ...message };
}
