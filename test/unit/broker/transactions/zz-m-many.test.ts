// Random programs of acknowledgements in several transactions and without, commits, aborts and restarts, against a plain list
// of what became of each message (T-10 to T-18, T-41).
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { MessagePlace } from '../../../../src/broker/topic-subscription.js';
import { LoggedPendingAckStore } from '../../../../src/broker/transactions/logged-pending-ack-store.js';
import { memoryPendingAckLogs } from '../../../../src/broker/transactions/pending-ack-log.js';
import { PulseworkError } from '../../../../src/core/errors.js';
import type { PendingWorld } from './pending-ack-kit.js';
import { pendingAcksOf, placeText, SEGMENT, TestSubscription } from './pending-ack-kit.js';
import { SegmentWorld, untold } from './segment-world.js';

const END = 9;
const BATCHES: Readonly<Record<number, number>> = { 2: 3, 3: 2, 6: 4 };

type Step =
  | { readonly kind: 'acknowledge'; readonly slot: number; readonly places: readonly MessagePlace[] }
  | { readonly kind: 'upTo' | 'normal' | 'normalUpTo'; readonly slot: number; readonly place: MessagePlace }
  | { readonly kind: 'commit' | 'abort' | 'restart'; readonly slot: number };

const slot = fc.nat({ max: 2 });
const place = fc
  .record({ position: fc.nat({ max: END - 1 }), index: fc.integer({ min: -1, max: 3 }) })
  .map(({ position, index }) => ({ position, batchIndex: index < (BATCHES[position] ?? 0) ? index : -1 }));
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('acknowledge' as const),
      slot,
      places: fc.array(place, { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('upTo' as const), slot, place }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('normal' as const), slot, place }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('normalUpTo' as const),
      slot,
      place: fc.nat({ max: 3 }).map((position) => ({ position, batchIndex: -1 })),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('commit' as const, 'abort' as const), slot }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const), slot }) },
);

/** Every message for itself; of an entry that is no batch the one message has the index 0. */
class Model {
  readonly #acked = new Set<string>();
  readonly #pending = new Map<string, string>();
  #upTo: { readonly transaction: string; readonly place: MessagePlace } | undefined;

  /** False for a conflict. */
  acknowledge(transaction: string, given: readonly MessagePlace[]): boolean {
    // Messages of an entry that is in the list as a whole are in it with that.
    const whole = new Set(given.filter(({ batchIndex }) => batchIndex < 0).map(({ position }) => position));
    const places = given.filter(({ position, batchIndex }) => batchIndex < 0 || !whole.has(position));
    for (const each of places) {
      const messages = messagesOf(each);
      const acked = messages.filter((message) => this.#acked.has(message));
      if (messages.some((message) => this.#pending.has(message)) || acked.length === messages.length) return false;
    }
    for (const message of places.flatMap((each) => messagesOf(each)))
      if (!this.#acked.has(message)) this.#pending.set(message, transaction);
    return true;
  }

  acknowledgeUpTo(transaction: string, place: MessagePlace): boolean {
    const current = this.#upTo;
    const further = current === undefined || upTo(place).length > upTo(current.place).length;
    const isOther = current !== undefined && current.transaction !== transaction;
    if (place.position <= this.markDelete || isOther || !further) return false;
    this.#upTo = { transaction, place };
    return true;
  }

  get markDelete(): number {
    let position = 0;
    while (position < END && this.isAcked(position)) position++;
    return position - 1;
  }

  normal(messages: readonly string[]): void {
    for (const message of messages) {
      this.#acked.add(message);
      this.#pending.delete(message);
    }
  }

  commit(transaction: string): void {
    this.normal(this.#messages(transaction));
    if (this.#upTo?.transaction !== transaction) return;
    this.normal(upTo(this.#upTo.place));
    this.#upTo = undefined;
  }

  /** @returns positions that come again */
  abort(transaction: string): readonly number[] {
    const messages = this.#messages(transaction);
    for (const message of messages) this.#pending.delete(message);
    if (this.#upTo?.transaction === transaction) this.#upTo = undefined;
    return [...new Set(messages.map((message) => Number(message.split('/')[0])))].sort((a, b) => a - b);
  }

  /** What the mark-delete position has passed is not taken over. */
  restart(): void {
    if (this.#upTo !== undefined && this.#upTo.place.position <= this.markDelete) this.#upTo = undefined;
  }

  isAcked(position: number): boolean {
    return messagesOf({ position, batchIndex: -1 }).every((message) => this.#acked.has(message));
  }

  /** What may be sent of each entry, as a text. */
  sendable(): string[] {
    const passed = new Set(this.#upTo === undefined ? [] : upTo(this.#upTo.place));
    const free = (message: string): boolean =>
      !this.#acked.has(message) && !this.#pending.has(message) && !passed.has(message);
    return positions().map((position) => messagesOf({ position, batchIndex: -1 }).filter(free).join(' '));
  }

  get transactions(): string[] {
    const all = new Set(this.#pending.values());
    if (this.#upTo !== undefined) all.add(this.#upTo.transaction);
    return [...all].sort();
  }

  #messages(transaction: string): readonly string[] {
    return [...this.#pending].filter(([, holder]) => holder === transaction).map(([message]) => message);
  }
}

function positions(): readonly number[] {
  return Array.from({ length: END }, (_, position) => position);
}

function messagesOf({ position, batchIndex }: MessagePlace): readonly string[] {
  if (batchIndex >= 0) return [`${position}/${batchIndex}`];
  return Array.from({ length: BATCHES[position] ?? 1 }, (_, index) => `${position}/${index}`);
}

function upTo({ position, batchIndex }: MessagePlace): readonly string[] {
  const before = positions().filter((other) => other < position);
  const inside = messagesOf({ position, batchIndex: -1 });
  const all = before.flatMap((other) => messagesOf({ position: other, batchIndex: -1 }));
  return [...all, ...(batchIndex < 0 ? inside : inside.slice(0, batchIndex + 1))];
}

function stateText(
  sendable: readonly string[],
  isAcked: (position: number) => boolean,
  transactions: readonly string[],
): string {
  return [...sendable, `acked ${positions().filter(isAcked).join()}`, [...transactions].sort().join()].join('; ');
}

/** The same of what is tested. */
function sendable({ acks, subscription }: PendingWorld): string[] {
  return positions().map((position) => {
    if (subscription.cursor.isAcked(position) || acks.withholds(position)) return '';
    const unacked = acks.unackedOf(position);
    const messages = messagesOf({ position, batchIndex: -1 });
    return messages.filter((_, index) => unacked?.has(index) !== false).join(' ');
  });
}

interface Home {
  begin(transaction: string): Promise<void>;
  open(subscription: TestSubscription): PendingWorld;
  end(world: PendingWorld, transaction: string, end: 'commit' | 'abort'): Promise<void>;
}

async function segmentHome(): Promise<Home> {
  const world = await SegmentWorld.with();
  let reconcile = (): Promise<void> => Promise.resolve();
  return {
    begin: (transaction) => world.begin(transaction),
    open: (subscription) => {
      const participant = world.participant(subscription, untold(world.metadata));
      reconcile = () => participant.store.reconcile();
      return participant;
    },
    end: async (_, transaction, end) => {
      await world.end(transaction, end === 'commit' ? 'COMMITTED' : 'ABORTED');
      await reconcile();
    },
  };
}

async function loggedHome(): Promise<Home> {
  const logs = memoryPendingAckLogs();
  const provider = {
    open: async () => new LoggedPendingAckStore(await logs.open({ topic: SEGMENT, subscription: 's' })),
  };
  return {
    begin: async () => undefined,
    open: (subscription) => pendingAcksOf(subscription, provider),
    end: ({ acks }, transaction, end) => acks[end](transaction),
  };
}

class Program {
  readonly #home: Home;
  readonly #model = new Model();
  readonly #current = new Map<number, string>();
  #world: PendingWorld;
  #begun = 0;

  constructor(home: Home) {
    this.#home = home;
    this.#world = home.open(new TestSubscription(SEGMENT, { batches: BATCHES }));
  }

  async run(steps: readonly Step[]): Promise<void> {
    await this.#world.acks.open();
    for (const each of steps) {
      await this.#step(each, await this.#transaction(each.slot));
      const isAcked = (position: number): boolean => this.#world.subscription.cursor.isAcked(position);
      const now = stateText(sendable(this.#world), isAcked, this.#world.acks.transactions);
      const model = this.#model;
      const isAckedThere = (position: number): boolean => model.isAcked(position);
      expect(now, JSON.stringify(each)).toBe(stateText(model.sendable(), isAckedThere, model.transactions));
    }
  }

  async #step(step: Step, transaction: string): Promise<void> {
    const { acks, subscription } = this.#world;
    switch (step.kind) {
      case 'acknowledge':
        expect(await taken(acks.acknowledge(transaction, step.places)), step.places.map(placeText).join()).toBe(
          this.#model.acknowledge(transaction, step.places),
        );
        return;
      case 'upTo':
        expect(await taken(acks.acknowledgeUpTo(transaction, [step.place])), placeText(step.place)).toBe(
          this.#model.acknowledgeUpTo(transaction, step.place),
        );
        return;
      case 'normal':
        subscription.normalAck(step.place.position, step.place.batchIndex);
        this.#model.normal(messagesOf(step.place));
        return;
      case 'normalUpTo':
        subscription.normalAckUpTo(step.place.position);
        this.#model.normal(upTo(step.place));
        return;
      case 'commit':
      case 'abort':
        return this.#end(step.slot, transaction, step.kind);
      case 'restart':
        await acks.close();
        this.#world = this.#home.open(subscription.restarted());
        await this.#world.acks.open();
        this.#model.restart();
    }
  }

  async #end(slot: number, transaction: string, end: 'commit' | 'abort'): Promise<void> {
    const { subscription } = this.#world;
    subscription.take();
    await this.#home.end(this.#world, transaction, end);
    this.#current.delete(slot);
    if (end === 'commit') {
      this.#model.commit(transaction);
      return;
    }
    const again = this.#model.abort(transaction);
    expect(subscription.take()).toEqual(again.length === 0 ? [] : [`redelivered ${again.join(' ')}`]);
  }

  /** The open one of a slot. */
  async #transaction(slot: number): Promise<string> {
    const open = this.#current.get(slot);
    if (open !== undefined) return open;
    this.#begun += 1;
    const transaction = `1_${this.#begun}`;
    await this.#home.begin(transaction);
    this.#current.set(slot, transaction);
    return transaction;
  }
}

/** False for a conflict. */
async function taken(call: Promise<void>): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    if (error instanceof PulseworkError && error.code === 'TRANSACTION_CONFLICT') return false;
    throw error;
  }
}

it.each<[string, () => Promise<Home>]>([
  ['a metadata store', segmentHome],
  ['a log of their own', loggedHome],
])('pending acknowledgements in %s are as a plain list has them, under random programs', async (_, home) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40, size: 'max' }), async (steps) =>
      new Program(await home()).run(steps),
    ),
    { numRuns: 1500 },
  );
}, 500_000);
