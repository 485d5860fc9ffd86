// Pending acknowledgements in a log of the subscription's own, as on topics before segments (T-43): whoever coordinates tells
// it the end of each transaction, and a mark in the log keeps that.
import { pendingAckStoreClosed } from './pending-ack-errors.js';
import type { PendingAckLog, PendingAckRecord } from './pending-ack-log.js';
import type { AckedEntry, PendingAckStore, PendingAckTarget } from './pending-ack-store.js';

export class LoggedPendingAckStore implements PendingAckStore {
  readonly #log: PendingAckLog;
  #closing: Promise<void> | undefined;

  constructor(log: PendingAckLog) {
    this.#log = log;
  }

  /** In the order in which it happened. An end that has a mark is applied again: perhaps it was not, before. */
  async replay(target: PendingAckTarget): Promise<void> {
    this.#checkOpen();
    for (const record of await this.#log.read()) await this.#replayOne(record, target);
  }

  appendIndividual(transaction: string, entries: readonly AckedEntry[]): Promise<void> {
    return this.#append({ kind: 'individual', transaction, entries });
  }

  appendCumulative(transaction: string, entry: AckedEntry): Promise<void> {
    return this.#append({ kind: 'cumulative', transaction, entry });
  }

  appendCommitMark(transaction: string): Promise<void> {
    return this.#append({ kind: 'commit', transaction });
  }

  appendAbortMark(transaction: string): Promise<void> {
    return this.#append({ kind: 'abort', transaction });
  }

  async applied(transaction: string): Promise<void> {
    this.#checkOpen();
    await this.#log.forget(transaction);
  }

  async reconcile(): Promise<void> {
    // The log knows no more than it was told.
  }

  async removeAll(): Promise<void> {
    this.#checkOpen();
    const transactions = new Set((await this.#log.read()).map(({ transaction }) => transaction));
    for (const transaction of transactions) await this.#log.forget(transaction);
  }

  close(): Promise<void> {
    this.#closing ??= this.#log.close();
    return this.#closing;
  }

  async #replayOne(record: PendingAckRecord, target: PendingAckTarget): Promise<void> {
    const { transaction } = record;
    switch (record.kind) {
      case 'individual':
        target.individual(transaction, record.entries);
        return;
      case 'cumulative':
        target.cumulative(transaction, record.entry);
        return;
      case 'commit':
        await target.committed(transaction);
        return this.applied(transaction);
      case 'abort':
        await target.aborted(transaction);
        return this.applied(transaction);
    }
  }

  async #append(record: PendingAckRecord): Promise<void> {
    this.#checkOpen();
    await this.#log.append(record);
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw pendingAckStoreClosed();
  }
}
