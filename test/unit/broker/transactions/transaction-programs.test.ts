// Random programs of two coordinators on one store, with calls at the same moment in every order, against a plain model of
// what a transaction is (T-30, T-35, T-36, T-37).
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type {
  TransactionAction,
  TransactionCoordinator,
} from '../../../../src/broker/transactions/transaction-coordinator.js';
import type { TransactionId } from '../../../../src/core/transaction-id.js';
import { transactionKey } from '../../../../src/core/transaction-id.js';
import { days, minutes } from '../../../../src/core/options.js';
import { settlePromises } from '../../../../src/testing/fake-clock.js';
import { memoryMetadataStore } from '../../../../src/stores/memory/memory-metadata-store.js';
import type { World } from './transaction-kit.js';
import { Participant, faultyStore, worldOf } from './transaction-kit.js';

const ACTIONS = ['commit', 'abort'] as const;
const RETENTION_MS = 1_000;

type Call =
  | { readonly kind: 'end'; readonly by: number; readonly pick: number; readonly action: TransactionAction }
  | { readonly kind: 'sweep'; readonly by: number }
  | { readonly kind: 'collect'; readonly by: number };

type Step =
  | { readonly kind: 'begin'; readonly by: number; readonly timeoutMs: number }
  | { readonly kind: 'acknowledge'; readonly participant: number; readonly pick: number }
  | { readonly kind: 'calls'; readonly calls: readonly Call[] }
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'hear' | 'miss'; readonly participant: number };

/** What a transaction is to somebody who sees calls and answers only. */
interface Modelled {
  readonly id: TransactionId;
  readonly deadlineMs: number;
  ended: { readonly state: 'COMMITTED' | 'ABORTED'; readonly atMs: number } | undefined;
  /** Who has not applied the outcome. */
  readonly pending: Set<Participant>;
}

const by = fc.nat({ max: 1 });
const pick = fc.nat({ max: 20 });
const call: fc.Arbitrary<Call> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('end' as const), by, pick, action: fc.constantFrom(...ACTIONS) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('sweep' as const, 'collect' as const), by }) },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('begin' as const), by, timeoutMs: fc.integer({ min: 1, max: 2_000 }) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('acknowledge' as const), participant: by, pick }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('calls' as const),
      calls: fc.array(call, { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 900 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('hear' as const, 'miss' as const), participant: by }) },
);

class Program {
  readonly transactions: Modelled[] = [];
  readonly participants: readonly Participant[];
  readonly #world: World;
  readonly #coordinators: readonly TransactionCoordinator[];

  constructor(world: World, coordinators: readonly TransactionCoordinator[]) {
    this.#world = world;
    this.#coordinators = coordinators;
    this.participants = ['billing', 'audit'].map((name) => new Participant(world.records, name));
  }

  async run(next: Step): Promise<void> {
    if (next.kind === 'begin') await this.#begin(next.by, next.timeoutMs);
    else if (next.kind === 'acknowledge') await this.#acknowledge(this.participants[next.participant]!, next.pick);
    else if (next.kind === 'calls') await this.#callAtOnce(next.calls);
    else if (next.kind === 'advance') await this.#world.clock.advanceBy(next.ms);
    else {
      const participant = this.participants[next.participant]!;
      participant.stop();
      if (next.kind === 'hear') await participant.start();
    }
    await settlePromises();
    await this.check();
  }

  /** The headers say what the model says. */
  async check(): Promise<void> {
    const wrong: unknown[] = [];
    for (const { id, ended } of this.transactions) {
      const header = (await this.#world.records.readHeader(transactionKey(id)))?.header;
      const isAsModelled =
        header === undefined
          ? ended !== undefined && this.#world.clock.now() - ended.atMs >= RETENTION_MS
          : header.state === (ended?.state ?? 'OPEN') && header.finalizedAtMs === (ended?.atMs ?? null);
      if (!isAsModelled) wrong.push({ transaction: transactionKey(id), header, ended });
    }
    expect(wrong).toEqual([]);
  }

  async #begin(coordinator: number, timeoutMs: number): Promise<void> {
    const id = await this.#coordinators[coordinator]!.newTransaction({ timeoutMs });
    const before = this.transactions.map((other) => transactionKey(other.id));
    expect(before).not.toContain(transactionKey(id));
    const deadlineMs = this.#world.clock.now() + timeoutMs;
    this.transactions.push({ id, deadlineMs, ended: undefined, pending: new Set() });
  }

  async #acknowledge(participant: Participant, at: number): Promise<void> {
    const transaction = this.#picked(at);
    if (transaction === undefined || transaction.ended !== undefined) return;
    await participant.acknowledge(transactionKey(transaction.id));
    transaction.pending.add(participant);
  }

  async #callAtOnce(calls: readonly Call[]): Promise<void> {
    const nowMs = this.#world.clock.now();
    const before = this.transactions.map(({ ended }) => ended);
    const answers = await Promise.allSettled(calls.map((each) => this.#call(each)));
    for (const transaction of this.transactions) {
      if (transaction.ended === undefined) await this.#learn(transaction, calls, nowMs);
    }
    for (const [at, answer] of answers.entries()) this.#checkAnswer(calls[at]!, answer, before);
  }

  async #call(each: Call): Promise<void> {
    const coordinator = this.#coordinators[each.by]!;
    if (each.kind === 'sweep') return coordinator.abortOverdue();
    if (each.kind === 'collect') return coordinator.collect();
    const transaction = this.#picked(each.pick);
    await (transaction && coordinator.end(transaction.id, each.action));
  }

  /** It ended exactly if somebody asked for it or its time was over, and as one of those who asked wanted. */
  async #learn(transaction: Modelled, calls: readonly Call[], nowMs: number): Promise<void> {
    const wanted = calls.flatMap((each) => {
      if (each.kind === 'sweep') return transaction.deadlineMs <= nowMs ? ['ABORTED'] : [];
      if (each.kind === 'collect' || this.#picked(each.pick) !== transaction) return [];
      return [each.action === 'commit' ? 'COMMITTED' : 'ABORTED'];
    });
    const header = (await this.#world.records.readHeader(transactionKey(transaction.id)))?.header;
    expect(wanted.length === 0 ? ['OPEN'] : wanted).toContain(header?.state);
    if (wanted.length === 0) return;
    transaction.ended = { state: header?.state as 'COMMITTED' | 'ABORTED', atMs: nowMs };
  }

  #checkAnswer(each: Call, answer: PromiseSettledResult<void>, before: readonly Modelled['ended'][]): void {
    const transaction = each.kind === 'end' ? this.#picked(each.pick) : undefined;
    if (each.kind !== 'end' || transaction?.ended === undefined) {
      expect(answer.status).toBe('fulfilled');
      return;
    }
    const { state, atMs } = transaction.ended;
    const asked = each.action === 'commit' ? 'COMMITTED' : 'ABORTED';
    const wasEnded = before[this.transactions.indexOf(transaction)] !== undefined;
    const mayBeForgotten = wasEnded && this.#world.clock.now() - atMs >= RETENTION_MS;
    const key = `(0,${transaction.id.leastBits})`;
    const allowed = asked === state ? ['done'] : [`Transaction ${key} is ${state}, cannot transition to ${asked}`];
    if (mayBeForgotten) allowed.push(`Transaction not found: ${key}`);
    expect(allowed).toContain(answer.status === 'fulfilled' ? 'done' : (answer.reason as Error).message);
  }

  #picked(at: number): Modelled | undefined {
    return this.transactions[at % Math.max(1, this.transactions.length)];
  }
}

/** Each call of the store takes so many turns, in turn: calls at the same moment meet in every order. */
function racing(turns: readonly number[]) {
  let at = 0;
  return () => {
    const count = turns[at++ % turns.length] ?? 0;
    return count === 0 ? undefined : { kind: 'wait' as const, until: afterTurns(count) };
  };
}

async function afterTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await Promise.resolve();
}

it('T-30, T-35, T-36, T-37: any program of two coordinators is one of the plain model, and leaves nothing behind', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 5, maxLength: 40 }),
      fc.array(fc.nat({ max: 6 }), { minLength: 7, maxLength: 31 }),
      async (steps, turns) => {
        const memory = memoryMetadataStore();
        await memory.open();
        const world = worldOf(memory);
        const slow = worldOf(faultyStore(memory, racing(turns)), world.clock);
        // Sweeps are steps of the program.
        const options = { sweepIntervalMs: days(999), collectionIntervalMs: days(999), retentionMs: RETENTION_MS };
        const coordinators = [slow.coordinator({ options }), slow.coordinator({ options })];
        const program = new Program(world, coordinators);
        for (const each of steps) await program.run(each);
        await finish(world, coordinators, program);
        expect((await memory.scan({})).filter(({ path }) => !path.startsWith('/txn/tc-seq/'))).toEqual([]);
      },
    ),
    { numRuns: 150, seed: 10 },
  );
}, 60_000);

/** Everybody is there, time passes, and one coordinator looks after the rest. */
async function finish(world: World, coordinators: readonly TransactionCoordinator[], program: Program): Promise<void> {
  for (const participant of program.participants) {
    participant.stop();
    await participant.start();
  }
  await world.clock.advanceBy(minutes(1));
  await coordinators[0]?.abortOverdue();
  for (const transaction of program.transactions) transaction.ended ??= { state: 'ABORTED', atMs: world.clock.now() };
  await program.check();
  await coordinators[1]?.collect();
  await settlePromises();
  await world.clock.advanceBy(RETENTION_MS);
  await coordinators[1]?.collect();
  await Promise.all(coordinators.map((coordinator) => coordinator.close()));
  for (const { id, ended, pending } of program.transactions) {
    for (const participant of pending) expect(participant.applied.get(transactionKey(id))).toBe(ended?.state);
  }
  for (const participant of program.participants) expect(participant.violations).toEqual([]);
}
