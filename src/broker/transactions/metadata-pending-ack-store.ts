// Pending acknowledgements of a segment's subscription as operations of their transactions in a metadata store (PIP-473,
// T-38 to T-42). Nobody tells it how a transaction ended: see `OpenTransactions`.
import type { SequenceWatch } from '../../ports/metadata-store.js';
import { OpenTransactions } from './open-transactions.js';
import { pendingAckStoreClosed } from './pending-ack-errors.js';
import type { AckedEntry, PendingAckOwner, PendingAckStore, PendingAckTarget } from './pending-ack-store.js';
import { allDone } from './transaction-ending.js';
import { isEnded } from './transaction-errors.js';
import type { StoredOp, TxnMetadataStore } from './txn-metadata-store.js';
import type { FinalState } from './txn-paths.js';
import type { AckOp, TransactionState } from './txn-records.js';

export class MetadataPendingAckStore implements PendingAckStore {
  readonly #records: TxnMetadataStore;
  readonly #owner: PendingAckOwner;
  readonly #open: OpenTransactions;
  #target: PendingAckTarget | undefined;
  #watch: SequenceWatch | undefined;

  /** @param report what failed and will be tried again at the next occasion. */
  constructor(records: TxnMetadataStore, owner: PendingAckOwner, report: (error: Error) => void) {
    this.#records = records;
    this.#owner = owner;
    this.#open = new OpenTransactions({ records, apply: (...end) => this.#apply(...end), report });
  }

  /** In the order of T-41: watch, scan, read headers, take over what is open, apply what has ended. */
  async replay(target: PendingAckTarget): Promise<void> {
    this.#checkOpen();
    this.#target = target;
    const { topic, subscription } = this.#owner;
    this.#watch = await this.#records.watchSubscription(topic, subscription, () => void this.reconcile());
    try {
      await this.#recover(target);
    } catch (error) {
      this.#watch.close();
      throw error;
    }
    if (this.#open.isClosed) this.#watch.close();
    this.#open.recovered();
  }

  appendIndividual(transaction: string, entries: readonly AckedEntry[]): Promise<void> {
    return this.#append(transaction, entries, null);
  }

  appendCumulative(transaction: string, entry: AckedEntry): Promise<void> {
    return this.#append(transaction, [entry], true);
  }

  /** The header says it (T-39). */
  async appendCommitMark(): Promise<void> {
    this.#checkOpen();
  }

  /** The same. */
  async appendAbortMark(): Promise<void> {
    this.#checkOpen();
  }

  async applied(transaction: string): Promise<void> {
    this.#checkOpen();
    await this.#deleteOps(transaction);
    this.#open.delete(transaction);
  }

  reconcile(): Promise<void> {
    return this.#open.reconcile();
  }

  async removeAll(): Promise<void> {
    this.#checkOpen();
    this.#open.clear();
    const { topic, subscription } = this.#owner;
    const own = await this.#records.acksOf(topic, subscription);
    await allDone(own.map(({ path }) => this.#records.deleteOp(path)));
  }

  async close(): Promise<void> {
    this.#watch?.close();
    await this.#open.close();
  }

  async #recover(target: PendingAckTarget): Promise<void> {
    const { topic, subscription } = this.#owner;
    const ops = byTransaction(await this.#records.acksOf(topic, subscription));
    const states = new Map<string, TransactionState>();
    await Promise.all([...ops.keys()].map(async (each) => states.set(each, await this.#open.stateOf(each))));
    for (const transaction of ops.keys()) this.#open.add(transaction);
    // First what has ended: what is still open may have been acknowledged after it.
    for (const [transaction, own] of ops) {
      const state = states.get(transaction);
      if (state === 'COMMITTED') takeOver(target, transaction, own);
      if (state !== undefined && state !== 'OPEN') await this.#open.ended(transaction, state);
    }
    for (const [transaction, own] of ops) if (states.get(transaction) === 'OPEN') takeOver(target, transaction, own);
  }

  /** One operation per position (T-39). */
  async #append(transaction: string, entries: readonly AckedEntry[], cumulative: true | null): Promise<void> {
    this.#checkOpen();
    await this.#open.checkOpen(transaction);
    // Before the first operation: were it after, an end in between would find it missing, and its event would be lost.
    this.#open.add(transaction);
    const { topic: segment, subscription } = this.#owner;
    const appends = entries.map((entry) =>
      this.#records.appendOp(transaction, { kind: 'ACK', segment, subscription, ...entry, cumulative }),
    );
    await allDone(appends);
    try {
      await this.#open.checkOpen(transaction);
    } catch (error) {
      // Its end may have been applied already, without these.
      if (isEnded(error)) await allDone(appends.map(async (path) => this.#records.deleteOp(await path)));
      throw error;
    }
  }

  /** First to the subscription, then its operations go (T-40). */
  async #apply(transaction: string, state: FinalState): Promise<void> {
    await (state === 'COMMITTED' ? this.#target?.committed(transaction) : this.#target?.aborted(transaction));
    await this.#deleteOps(transaction);
  }

  async #deleteOps(transaction: string): Promise<void> {
    const own = (await this.#records.opsOf(transaction)).filter(({ op }) => this.#isOwn(op));
    await allDone(own.map(({ path }) => this.#records.deleteOp(path)));
  }

  #isOwn(op: StoredOp['op']): boolean {
    return op.kind === 'ACK' && op.segment === this.#owner.topic && op.subscription === this.#owner.subscription;
  }

  #checkOpen(): void {
    if (this.#open.isClosed) throw pendingAckStoreClosed();
  }
}

function takeOver(target: PendingAckTarget, transaction: string, ops: readonly StoredOp<AckOp>[]): void {
  const individual = ops.filter(({ op }) => op.cumulative === null).map(({ op }) => op);
  if (individual.length > 0) target.individual(transaction, individual);
  for (const { op } of ops) if (op.cumulative !== null) target.cumulative(transaction, op);
}

function byTransaction(ops: readonly StoredOp<AckOp>[]): ReadonlyMap<string, readonly StoredOp<AckOp>[]> {
  const all = new Map<string, StoredOp<AckOp>[]>();
  for (const op of ops) {
    const own = all.get(op.transaction);
    if (own === undefined) all.set(op.transaction, [op]);
    else own.push(op);
  }
  return all;
}
