// A coordinator whose store fails, or whose process ends, at each single call in turn: whatever that leaves, the next
// coordinator makes an end of it (T-30, T-36, T-37, T-38).
import type { MetadataStore } from 'pulsework/sqlite';
import { describe, expect, it } from 'vitest';
import type { TransactionCoordinator } from '../../../../src/broker/transactions/transaction-coordinator.js';
import type { TransactionId } from '../../../../src/core/transaction-id.js';
import { transactionKey } from '../../../../src/core/transaction-id.js';
import type { TxnHeader } from '../../../../src/broker/transactions/txn-records.js';
import { TransportError } from '../../../../src/core/errors.js';
import { days, minutes } from '../../../../src/core/options.js';
import { settlePromises } from '../../../../src/testing/fake-clock.js';
import { memoryMetadataStore } from '../../../../src/stores/memory/memory-metadata-store.js';
import type { StoreFault, World } from './transaction-kit.js';
import { Participant, faultyStore, worldOf } from './transaction-kit.js';

type Kind = Exclude<StoreFault['kind'], 'wait'>;
type Outcome = 'COMMITTED' | 'ABORTED';

/** More calls than the program makes: the last ones meet no fault, which shows that all were tried. */
const MORE_CALLS_THAN_ANY = 200;

/** All states that each header was written with, in order. */
function watchedStore(): { readonly store: MetadataStore; readonly states: Map<string, string[]> } {
  const memory = memoryMetadataStore();
  const states = new Map<string, string[]>();
  const put: MetadataStore['put'] = async (path, value, options) => {
    const version = await memory.put(path, value, options);
    if (path.startsWith('/txn/id/')) {
      const { state } = JSON.parse(new TextDecoder().decode(value)) as TxnHeader;
      states.set(path, [...(states.get(path) ?? []), state]);
    }
    return version;
  };
  const store = faultyStore(memory, () => undefined);
  return { store: { ...store, put }, states };
}

class Run {
  readonly given: TransactionId[] = [];
  /** What calls answered. */
  readonly answered = new Map<string, Outcome>();
  readonly participants: readonly Participant[];
  readonly #world: World;
  readonly #coordinator: TransactionCoordinator;
  readonly #repeats: boolean;

  constructor(world: World, coordinator: TransactionCoordinator, repeats: boolean) {
    this.#world = world;
    this.#coordinator = coordinator;
    this.#repeats = repeats;
    this.participants = ['billing', 'audit'].map((name) => new Participant(world.records, name));
  }

  /** Commits one, asks again, aborts one, lets the time of one pass, and collects. */
  async program(): Promise<void> {
    await this.#try(() => this.#coordinator.start());
    await this.participants[0]?.start();
    const [first, second, third] = [await this.#begin(60_000), await this.#begin(10), await this.#begin(60_000)];
    await this.#end(first, 'COMMITTED');
    await this.#end(third, 'ABORTED');
    await this.#end(first, 'COMMITTED');
    await this.#world.clock.advanceBy(20);
    await this.#try(() => this.#coordinator.abortOverdue());
    await this.#end(second, 'ABORTED');
    await this.#world.clock.advanceBy(minutes(20));
    await this.#try(() => this.#coordinator.collect());
  }

  async #begin(timeoutMs: number): Promise<TransactionId | undefined> {
    let id: TransactionId | undefined;
    await this.#try(async () => (id = await this.#coordinator.newTransaction({ timeoutMs })));
    if (id === undefined) return undefined;
    this.given.push(id);
    for (const participant of this.participants) await participant.acknowledge(transactionKey(id));
    return id;
  }

  async #end(id: TransactionId | undefined, outcome: Outcome): Promise<void> {
    if (id === undefined) return;
    await this.#try(async () => {
      await this.#coordinator.end(id, outcome === 'COMMITTED' ? 'commit' : 'abort');
      this.answered.set(transactionKey(id), outcome);
    });
  }

  /** A client that was told to may ask again, or give up. */
  async #try(call: () => Promise<unknown>): Promise<void> {
    try {
      await call();
    } catch (error) {
      if (!(error instanceof TransportError && error.retriable)) throw error;
      if (this.#repeats) await call();
    }
  }
}

/** The world goes on with a new coordinator, and everybody there to hear. */
async function converge(world: World, run: Run): Promise<void> {
  const coordinator = world.coordinator();
  await coordinator.start();
  for (const participant of run.participants) await participant.start();
  await world.clock.advanceBy(minutes(30));
  await coordinator.collect();
  await coordinator.close();
  for (const participant of run.participants) participant.stop();
}

async function runWith(kind: Kind, faultyCall: number, repeats: boolean): Promise<number> {
  const { store, states } = watchedStore();
  await store.open();
  const world = worldOf(store);
  let calls = 0;
  let died: () => void = () => undefined;
  const death = new Promise<void>((resolve) => (died = resolve));
  const faulty = faultyStore(store, (call) => {
    calls = call;
    if (call !== faultyCall) return undefined;
    if (kind.startsWith('die')) void settlePromises().then(died);
    return { kind };
  });
  // Its sweeps are calls of the program, so that it makes the same calls each time.
  const options = { sweepIntervalMs: days(999), collectionIntervalMs: days(999) };
  const run = new Run(world, worldOf(faulty, world.clock).coordinator({ options }), repeats);
  await Promise.race([run.program(), death]);
  await converge(world, run);

  // Each was open once and ended once.
  for (const [path, written] of states) {
    expect(written, path).toEqual(['OPEN', expect.stringMatching(/^(COMMITTED|ABORTED)$/)]);
  }
  const outcomeOf = (transaction: string) => states.get(`/txn/id/${transaction}`)?.[1];
  for (const [transaction, outcome] of run.answered) expect(outcomeOf(transaction)).toBe(outcome);
  expect(new Set(run.given.map(transactionKey)).size).toBe(run.given.length);
  for (const participant of run.participants) {
    expect(participant.violations).toEqual([]);
    for (const [transaction, applied] of participant.applied) expect(applied).toBe(outcomeOf(transaction));
    for (const id of run.answered.keys()) expect(participant.applied.has(id)).toBe(true);
  }
  const left = (await store.scan({})).map(({ path }) => path);
  expect(left.filter((path) => !path.startsWith('/txn/tc-seq/'))).toEqual([]);
  return calls;
}

describe.each(['refuse', 'lose-answer', 'die-before', 'die-after'] as const)(
  'a fault at each store call: %s',
  (kind) => {
    it.each([true, false])('everything converges, and no record is left (clients ask again: %s)', async (repeats) => {
      let at = 1;
      for (; at < MORE_CALLS_THAN_ANY; at++) {
        const calls = await runWith(kind, at, repeats);
        if (calls < at) break;
      }

      expect(at).toBeGreaterThan(30);
      expect(at).toBeLessThan(MORE_CALLS_THAN_ANY);
    });
  },
);
