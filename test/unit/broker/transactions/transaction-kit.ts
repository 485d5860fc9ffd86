// What tests of transactions are made of: a store that fails, stalls or dies at a chosen call, and a participant that does
// no more than the rules ask of one.
import type { MetadataStore, SequenceWatch } from 'pulsework/sqlite';
import { TransactionCoordinator } from '../../../../src/broker/transactions/transaction-coordinator.js';
import type { CoordinatorParts } from '../../../../src/broker/transactions/transaction-coordinator.js';
import { TxnMetadataStore } from '../../../../src/broker/transactions/txn-metadata-store.js';
import type { FinalState } from '../../../../src/broker/transactions/txn-paths.js';
import type { AckOp, TransactionState, WriteOp } from '../../../../src/broker/transactions/txn-records.js';
import { PulseworkError } from '../../../../src/core/errors.js';
import { FakeClock } from '../../../../src/testing/fake-clock.js';

export const SEGMENT = 'segment://shop/eu/orders/0000-7fff-3';

export const WRITE: WriteOp = { kind: 'WRITE', segment: SEGMENT, ledgerId: 0, entryId: 0 };

export function ackOn(subscription: string, entryId = 0): AckOp {
  return { kind: 'ACK', segment: SEGMENT, subscription, ledgerId: 1, entryId, cumulative: null, batch: null };
}

export interface World {
  readonly clock: FakeClock;
  readonly records: TxnMetadataStore;
  coordinator(parts?: Partial<CoordinatorParts>): TransactionCoordinator;
}

/** Coordinators and records over one open store. */
export function worldOf(store: MetadataStore, clock = new FakeClock(1_000_000)): World {
  const records = new TxnMetadataStore(store);
  return {
    clock,
    records,
    coordinator: (parts) => new TransactionCoordinator({ store: records, clock, ...parts }),
  };
}

/** What is to happen at a call of a store; `wait` goes on when it resolves. */
export type StoreFault =
  | { readonly kind: 'refuse' | 'lose-answer' | 'die-before' | 'die-after' }
  | { readonly kind: 'wait'; readonly until: Promise<void> };

const NEVER = new Promise<never>(() => undefined);

/** Every call of `store` goes through `faultAt`, which is given its number, from 1, and its name. */
export function faultyStore(
  store: MetadataStore,
  faultAt: (call: number, name: string) => StoreFault | undefined,
): MetadataStore {
  let calls = 0;
  let isDead = false;
  async function through<T>(name: string, act: () => Promise<T>): Promise<T> {
    calls += 1;
    const fault = isDead ? undefined : faultAt(calls, name);
    if (fault?.kind === 'die-before') isDead = true;
    // The process has ended: nothing of it goes on.
    if (isDead) return NEVER;
    if (fault?.kind === 'refuse') throw new PulseworkError('STORE_FAILED', `call ${calls}, ${name}, was refused`);
    if (fault?.kind === 'wait') await fault.until;
    const answer = await act();
    if (fault?.kind === 'die-after') isDead = true;
    if (isDead) return NEVER;
    if (fault?.kind === 'lose-answer') throw new PulseworkError('STORE_FAILED', `the answer of ${name} was lost`);
    return answer;
  }
  return {
    name: `faulty ${store.name}`,
    open: () => store.open(),
    close: () => store.close(),
    get: (...given) => through('get', () => store.get(...given)),
    put: (...given) => through('put', () => store.put(...given)),
    delete: (...given) => through('delete', () => store.delete(...given)),
    append: (...given) => through('append', () => store.append(...given)),
    children: (...given) => through('children', () => store.children(...given)),
    scan: (...given) => through('scan', () => store.scan(...given)),
    scanIndex: (...given) => through('scanIndex', () => store.scanIndex(...given)),
    watch: (...given) => through('watch', () => store.watch(...given)),
  };
}

/** A subscription on the segment: applies outcomes as headers tell them, and deletes its operations afterwards. */
export class Participant {
  readonly applied = new Map<string, FinalState>();
  /** What rule was broken, if any. */
  readonly violations: string[] = [];
  readonly #records: TxnMetadataStore;
  readonly #subscription: string;
  #watch: SequenceWatch | undefined;
  #reconciling: Promise<void> = Promise.resolve();

  constructor(records: TxnMetadataStore, subscription: string) {
    this.#records = records;
    this.#subscription = subscription;
  }

  async start(): Promise<this> {
    const reconcile = (): void => void this.reconcile();
    this.#watch = await this.#records.watchSubscription(SEGMENT, this.#subscription, reconcile);
    return this;
  }

  /** From here on it misses everything. */
  stop(): void {
    this.#watch?.close();
  }

  async acknowledge(transaction: string): Promise<void> {
    await this.#records.appendOp(transaction, ackOn(this.#subscription));
  }

  /** One after the other: events may come while it works. */
  reconcile(): Promise<void> {
    this.#reconciling = this.#reconciling.then(() => this.#applyOutcomes());
    return this.#reconciling;
  }

  async #applyOutcomes(): Promise<void> {
    for (const { path, transaction } of await this.#records.acksOf(SEGMENT, this.#subscription)) {
      const state: TransactionState = (await this.#records.readHeader(transaction))?.header.state ?? 'ABORTED';
      if (state === 'OPEN') continue;
      const before = this.applied.get(transaction) ?? state;
      if (before !== state) this.violations.push(`${transaction} was ${before} and is ${state}`);
      this.applied.set(transaction, state);
      await this.#records.deleteOp(path);
    }
  }
}
