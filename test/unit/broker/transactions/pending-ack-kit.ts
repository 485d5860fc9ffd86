// A subscription with a real cursor and what of it would survive; entries are named by ledger 7 and their position.
import type { Stored } from '../../../../src/broker/broker-store.js';
import { Cursor } from '../../../../src/broker/cursor.js';
import type { MessagePlace } from '../../../../src/broker/topic-subscription.js';
import { memoryPendingAckLogs } from '../../../../src/broker/transactions/pending-ack-log.js';
import type {
  PendingAckStore,
  PendingAckStoreProvider,
} from '../../../../src/broker/transactions/pending-ack-store.js';
import { PendingAcks } from '../../../../src/broker/transactions/pending-acks.js';
import type { PendingAckSubscription } from '../../../../src/broker/transactions/pending-acks.js';
import type { EntryPart } from '../../../../src/broker/transactions/pending-positions.js';
import { LoggedPendingAckStore } from '../../../../src/broker/transactions/logged-pending-ack-store.js';
import { FakeClock } from '../../../../src/testing/fake-clock.js';

export const SEGMENT = 'segment://public/default/orders/0000-ffff-1';
/** Keys of transactions, and how Pulsar's texts name the first. */
export const [A, B, C] = ['1_1', '1_2', '1_3'] as const;

type Acknowledged = MessagePlace & { readonly cumulative: boolean };

export interface TestEntries {
  /** How many messages the batch at a position holds; the others are no batches. */
  readonly batches?: Readonly<Record<number, number>>;
}

export class TestSubscription implements PendingAckSubscription {
  readonly topic: string;
  readonly subscription = 's';
  readonly cursor = new Cursor(-1);
  acks!: PendingAcks;
  /** What happened, in its order. */
  readonly happened: string[] = [];
  /** The next acknowledgements of a commit are in memory only, and reject. */
  storeFails = false;
  /** Around what is stored of the cursor: a crash may be there. */
  storing: (store: () => void) => Stored = (store) => {
    store();
    return undefined;
  };
  readonly #entries: TestEntries;
  readonly #disk: Acknowledged[];

  constructor(topic = SEGMENT, entries: TestEntries = {}, disk: readonly Acknowledged[] = []) {
    this.topic = topic;
    this.#entries = entries;
    this.#disk = [...disk];
    for (const place of disk) this.#apply(place);
  }

  /** What a process that starts now finds of it. */
  restarted(): TestSubscription {
    return new TestSubscription(this.topic, this.#entries, this.#disk);
  }

  batchSizeAt(position: number): number {
    return this.#entries.batches?.[position] ?? 0;
  }

  idOf(position: number): { readonly ledgerId: number; readonly entryId: number } {
    return { ledgerId: 7, entryId: position };
  }

  positionOf(ledgerId: number, entryId: number): number | undefined {
    return ledgerId === 7 ? entryId : undefined;
  }

  left({ position, indexes }: EntryPart): void {
    this.happened.push(`left ${[position, ...(indexes ?? [])].join('/')}`);
  }

  acknowledge(place: MessagePlace): Stored {
    this.happened.push(`acknowledged ${placeText(place)}`);
    return this.#acknowledge(place);
  }

  acknowledgeUpTo(place: MessagePlace): Stored {
    this.happened.push(`acknowledged up to ${placeText(place)}`);
    return this.#acknowledgeUpTo(place);
  }

  redeliver(positions: readonly number[]): void {
    if (positions.length > 0) this.happened.push(`redelivered ${positions.join(' ')}`);
  }

  /** Without a transaction. */
  normalAck(position: number, batchIndex = -1): void {
    void this.#acknowledge({ position, batchIndex });
  }

  normalAckUpTo(position: number): void {
    void this.#acknowledgeUpTo({ position, batchIndex: -1 });
  }

  /** What was done since the last call. */
  take(): string[] {
    return this.happened.splice(0);
  }

  #acknowledge(place: MessagePlace): Stored {
    const stored = this.#store({ ...place, cumulative: false });
    this.acks.acknowledged(place.position, place.batchIndex);
    return stored;
  }

  #acknowledgeUpTo(place: MessagePlace): Stored {
    const from = this.cursor.markDelete + 1;
    const stored = this.#store({ ...place, cumulative: true });
    this.acks.acknowledgedRange(from, this.cursor.markDelete);
    for (let index = 0; index <= place.batchIndex; index++) this.acks.acknowledged(place.position, index);
    return stored;
  }

  #store(place: Acknowledged): Stored {
    this.#apply(place);
    if (this.storeFails) return Promise.reject(new Error('the disk is full'));
    return this.storing(() => this.#disk.push(place));
  }

  #apply({ position, batchIndex, cumulative }: Acknowledged): void {
    const size = this.batchSizeAt(position);
    if (!cumulative) {
      if (batchIndex < 0) this.cursor.acknowledge(position);
      else this.cursor.acknowledgeIndex(position, batchIndex, size);
    } else if (batchIndex < 0) {
      this.cursor.acknowledgeUpTo(position);
    } else {
      this.cursor.acknowledgeUpTo(position - 1);
      for (let index = 0; index <= batchIndex; index++) this.cursor.acknowledgeIndex(position, index, size);
    }
  }
}

/** `position`, or `position/index` of a batch. */
export function placeText({ position, batchIndex }: MessagePlace): string {
  return batchIndex < 0 ? `${position}` : `${position}/${batchIndex}`;
}

/** Places of whole entries, or with `position/index` of messages of batches. */
export function places(...texts: readonly (number | string)[]): readonly MessagePlace[] {
  return texts.map((text) => {
    const [position, batchIndex] = String(text).split('/').map(Number);
    return { position: position!, batchIndex: batchIndex ?? -1 };
  });
}

export interface PendingWorld {
  readonly subscription: TestSubscription;
  readonly acks: PendingAcks;
  readonly clock: FakeClock;
}

/** The pending acknowledgements of a subscription, from what `provider` kept. */
export function pendingAcksOf(
  subscription: TestSubscription,
  provider: PendingAckStoreProvider,
  clock = new FakeClock(),
): PendingWorld {
  const acks = new PendingAcks(subscription, provider, clock);
  subscription.acks = acks;
  return { subscription, acks, clock };
}

/** With a log in memory. @param change what the store does otherwise */
export function loggedWorld(entries: TestEntries = {}, change: Partial<PendingAckStore> = {}): PendingWorld {
  const logs = memoryPendingAckLogs();
  const provider: PendingAckStoreProvider = {
    open: async (owner) => Object.assign(new LoggedPendingAckStore(await logs.open(owner)), change),
  };
  return pendingAcksOf(new TestSubscription('persistent://public/default/orders', entries), provider);
}

/** Positions from 0 to `end`, without it, of which nothing may be sent. */
export function withheld({ acks }: PendingWorld, end = 10): number[] {
  return Array.from({ length: end }, (_, position) => position).filter((position) => acks.withholds(position));
}
