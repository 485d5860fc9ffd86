// One producer batch while any of its messages is known here. Brokers redeliver whole entries, so what its messages
// do is tracked together: which are done, which are here, and which wait for a due time.
import type { DeliveryRecord } from './delivery-record.js';
import type { MessageId } from '../core/message-id.js';

export class BatchEntry {
  readonly id: MessageId;
  /** Batch indexes that were acknowledged: a redelivery repeats them where the broker forgot. */
  readonly done = new Set<number>();
  /** Messages that are in this process with their payload, by batch index. */
  readonly records = new Map<number, DeliveryRecord>();
  /** When messages whose payload was let go are due, epoch milliseconds by batch index. */
  readonly holds = new Map<number, number>();
  /** Due to be asked back, which waits until no message of it waits or runs here. */
  askWhenQuiet = false;

  constructor(id: MessageId) {
    this.id = id;
  }

  /** No message of it waits for a slot or runs: asking the entry back repeats no work in progress. */
  get quiet(): boolean {
    for (const record of this.records.values()) {
      if (record.state === 'waiting' || record.state === 'running') return false;
    }
    return true;
  }

  /** Whether this message of it was here before. */
  hasSeen(index: number): boolean {
    return this.done.has(index) || this.records.has(index) || this.holds.has(index);
  }

  get complete(): boolean {
    return this.done.size >= this.id.batchSize;
  }
}
