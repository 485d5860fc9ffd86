// Between a subscription of a topic and what is pending on it: positions and ids, and a new start after each unload.
import type { Clock } from '../../ports/clock.js';
import type { AckSet } from '../ack-set.js';
import type { Stored } from '../broker-store.js';
import type { Cursor } from '../cursor.js';
import type { TopicLog } from '../topic-log.js';
import type { MessagePlace } from '../topic-subscription.js';
import type { EntryId } from './pending-ack-errors.js';
import type { PendingAckStoreProvider } from './pending-ack-store.js';
import { PendingAcks } from './pending-acks.js';
import type { PendingAckSubscription } from './pending-acks.js';

export interface AckedTopic {
  readonly name: string;
  readonly log: TopicLog;
  readonly clock: Clock;
}

export interface SubscriptionSteps extends Pick<
  PendingAckSubscription,
  'left' | 'acknowledge' | 'acknowledgeUpTo' | 'redeliver'
> {
  readonly name: string;
  readonly cursor: Cursor;
  /** What was kept is known: entries may be sent. */
  ready(): void;
  /** It cannot be read. Whoever is connected must come again, and then it is tried anew. */
  failed(): void;
}

export class SubscriptionAcks {
  readonly #subscription: PendingAckSubscription;
  readonly #steps: SubscriptionSteps;
  readonly #provider: PendingAckStoreProvider;
  readonly #clock: Clock;
  #acks: PendingAcks;
  /** Of one subscription one store at a time is open. */
  #closing: Promise<void> = Promise.resolve();

  constructor(topic: AckedTopic, steps: SubscriptionSteps, provider: PendingAckStoreProvider) {
    this.#subscription = pendingAckSubscription(topic, steps);
    this.#steps = steps;
    this.#provider = provider;
    this.#clock = topic.clock;
    this.#acks = this.#opened();
  }

  /** Nothing is sent before: what is pending is not known. */
  get isReady(): boolean {
    return this.#acks.state === 'ready';
  }

  /** What could not be read is read again: somebody connects. */
  connecting(): void {
    if (this.#acks.state === 'error') this.reopen();
    else this.#acks.used();
  }

  /** Starts with nothing but what is kept. */
  reopen(): void {
    this.#close();
    this.#acks = this.#opened();
  }

  /** The subscription is deleted. */
  remove(): void {
    const acks = this.#acks;
    // What is left of it is aborted by whoever has a subscription of this name later, or goes with its log.
    this.#closing = this.#closing.then(() => acks.remove()).catch(() => acks.close());
    const { topic, subscription } = this.#subscription;
    this.#provider.leave?.({ topic, subscription }, this.#closing);
  }

  used(): void {
    this.#acks.used();
  }

  /** Waits for what is being recorded. What is pending stays pending. */
  async close(): Promise<void> {
    this.#close();
    await this.#closing;
  }

  withholds(position: number): boolean {
    return this.#acks.withholds(position);
  }

  unackedOf(position: number): AckSet | undefined {
    return this.#acks.unackedOf(position);
  }

  acknowledged(position: number, batchIndex: number): void {
    this.#acks.acknowledged(position, batchIndex);
  }

  acknowledgedRange(from: number, to: number): void {
    this.#acks.acknowledgedRange(from, to);
  }

  acknowledge(transaction: string, places: readonly MessagePlace[]): Promise<void> {
    return this.#acks.acknowledge(transaction, places);
  }

  acknowledgeUpTo(transaction: string, place: MessagePlace): Promise<void> {
    return this.#acks.acknowledgeUpTo(transaction, [place]);
  }

  #close(): void {
    const acks = this.#acks;
    this.#closing = this.#closing.then(() => acks.close()).catch(() => undefined);
  }

  #opened(): PendingAcks {
    const before = this.#closing;
    const open: PendingAckStoreProvider['open'] = async (owner) => {
      await before;
      return this.#provider.open(owner);
    };
    const acks = new PendingAcks(this.#subscription, { open }, this.#clock);
    void acks.open().then(
      () => this.#steps.ready(),
      () => {
        if (acks === this.#acks && acks.state === 'error') this.#steps.failed();
      },
    );
    return acks;
  }
}

function pendingAckSubscription({ name: topic, log }: AckedTopic, steps: SubscriptionSteps): PendingAckSubscription {
  return {
    topic,
    subscription: steps.name,
    cursor: steps.cursor,
    batchSizeAt: (position) => log.entryAt(position)?.batchSize ?? 0,
    idOf: (position) => idOf(log, position),
    positionOf: (ledgerId, entryId) => log.positionOf(ledgerId, entryId),
    left: (part) => steps.left(part),
    acknowledge: (place): Stored => steps.acknowledge(place),
    acknowledgeUpTo: (place): Stored => steps.acknowledgeUpTo(place),
    redeliver: (positions) => steps.redeliver(positions),
  };
}

/** -1:-1 for one that was trimmed. */
function idOf(log: TopicLog, position: number): EntryId {
  const ledger = log.ledgerOf(position);
  return ledger === undefined
    ? { ledgerId: -1, entryId: -1 }
    : { ledgerId: ledger.id, entryId: position - ledger.first };
}
