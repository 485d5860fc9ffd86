// Pending acknowledgements of a segment's subscription as operations of their transactions in a metadata store (PIP-473,
// T-38 to T-42). Nobody tells it how a transaction ended: its header says so. An event only says: read the headers of what
// you believe open, and so does every other occasion.
import { toError } from '../../core/errors.js';
import type { SequenceWatch } from '../../ports/metadata-store.js';
import { pendingAckStoreClosed, transactionNotOpen } from './pending-ack-errors.js';
import type { AckedEntry, PendingAckOwner, PendingAckStore, PendingAckTarget } from './pending-ack-store.js';
import { allDone } from './transaction-ending.js';
import { isEnded, transactionNotFound } from './transaction-errors.js';
import { parseTransactionKey } from './txn-paths.js';
import type { StoredOp, TxnMetadataStore } from './txn-metadata-store.js';
import type { FinalState } from './txn-paths.js';
import type { AckOp, TransactionState } from './txn-records.js';

export class MetadataPendingAckStore implements PendingAckStore {
  readonly #records: TxnMetadataStore;
  readonly #owner: PendingAckOwner;
  readonly #report: (error: Error) => void;
  #target: PendingAckTarget | undefined;
  #watch: SequenceWatch | undefined;
  /** Transactions with operations here that are not known to have ended, or whose end is not applied completely. */
  readonly #open = new Set<string>();
  /** Events before count for nothing: the recovery reads all there is. */
  #isRecovered = false;
  #isClosed = false;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  /** @param report what failed and will be tried again at the next occasion. */
  constructor(records: TxnMetadataStore, owner: PendingAckOwner, report: (error: Error) => void) {
    this.#records = records;
    this.#owner = owner;
    this.#report = report;
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
    if (this.#isClosed) this.#watch.close();
    this.#isRecovered = true;
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

  /** One run for all calls that come while another one runs. */
  reconcile(): Promise<void> {
    if (!this.#isRecovered || this.#isClosed) return Promise.resolve();
    if (this.#running === undefined) {
      this.#running = this.#readHeaders().finally(() => (this.#running = undefined));
      return this.#running;
    }
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.reconcile();
    });
    return this.#next;
  }

  async removeAll(): Promise<void> {
    this.#checkOpen();
    this.#open.clear();
    const { topic, subscription } = this.#owner;
    const own = await this.#records.acksOf(topic, subscription);
    await allDone(own.map(({ path }) => this.#records.deleteOp(path)));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#watch?.close();
    await this.#running;
  }

  async #recover(target: PendingAckTarget): Promise<void> {
    const { topic, subscription } = this.#owner;
    const ops = byTransaction(await this.#records.acksOf(topic, subscription));
    const states = new Map<string, TransactionState>();
    await Promise.all([...ops.keys()].map(async (each) => states.set(each, await this.#stateOf(each))));
    for (const transaction of ops.keys()) this.#open.add(transaction);
    // First what has ended: what is still open may have been acknowledged after it.
    for (const [transaction, own] of ops) {
      const state = states.get(transaction);
      if (state === 'COMMITTED') takeOver(target, transaction, own);
      if (state !== undefined && state !== 'OPEN') await this.#applyTerminal(transaction, state, target);
    }
    for (const [transaction, own] of ops) if (states.get(transaction) === 'OPEN') takeOver(target, transaction, own);
  }

  /** One operation per position (T-39). */
  async #append(transaction: string, entries: readonly AckedEntry[], cumulative: true | null): Promise<void> {
    this.#checkOpen();
    await this.#checkHeader(transaction);
    // Before the first operation: were it after, an end in between would find it missing, and its event would be lost.
    this.#open.add(transaction);
    const { topic: segment, subscription } = this.#owner;
    const appends = entries.map((entry) =>
      this.#records.appendOp(transaction, { kind: 'ACK', segment, subscription, ...entry, cumulative }),
    );
    await allDone(appends);
    try {
      await this.#checkHeader(transaction);
    } catch (error) {
      // Its end may have been applied already, without these.
      if (isEnded(error)) await allDone(appends.map(async (path) => this.#records.deleteOp(await path)));
      throw error;
    }
  }

  /** @throws TransportError TRANSACTION_ENDED unless it is open (T-42). */
  async #checkHeader(transaction: string): Promise<void> {
    const stored = await this.#records.readHeader(transaction);
    if (stored?.header.state === 'OPEN') return;
    const id = parseTransactionKey(transaction);
    throw stored === undefined ? transactionNotFound(id) : transactionNotOpen(id, stored.header.state);
  }

  /** Without a header it was aborted: an operation outlives the header of no other (T-38). */
  async #stateOf(transaction: string): Promise<TransactionState> {
    return (await this.#records.readHeader(transaction))?.header.state ?? 'ABORTED';
  }

  async #readHeaders(): Promise<void> {
    await Promise.all([...this.#open].map((transaction) => this.#readHeader(transaction)));
  }

  async #readHeader(transaction: string): Promise<void> {
    const target = this.#target;
    if (target === undefined) return;
    try {
      const state = await this.#stateOf(transaction);
      if (state !== 'OPEN') await this.#applyTerminal(transaction, state, target);
    } catch (error) {
      this.#report(toError(error));
    }
  }

  /** Whoever takes it out of the open ones applies it: first to the subscription, then its operations go (T-40). */
  async #applyTerminal(transaction: string, state: FinalState, target: PendingAckTarget): Promise<void> {
    if (this.#isClosed || !this.#open.delete(transaction)) return;
    try {
      await (state === 'COMMITTED' ? target.committed(transaction) : target.aborted(transaction));
      await this.#deleteOps(transaction);
    } catch (error) {
      // Also where only the operations are left: nobody else deletes them, and its header stays as long.
      this.#open.add(transaction);
      this.#report(toError(error));
    }
  }

  async #deleteOps(transaction: string): Promise<void> {
    const own = (await this.#records.opsOf(transaction)).filter(({ op }) => this.#isOwn(op));
    await allDone(own.map(({ path }) => this.#records.deleteOp(path)));
  }

  #isOwn(op: StoredOp['op']): boolean {
    return op.kind === 'ACK' && op.segment === this.#owner.topic && op.subscription === this.#owner.subscription;
  }

  #checkOpen(): void {
    if (this.#isClosed) throw pendingAckStoreClosed();
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
