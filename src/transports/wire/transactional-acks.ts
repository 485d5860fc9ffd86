// Acknowledgements of one consumer that are parts of transactions. They name what the call named and nothing else: what
// else of a batch is acknowledged would be acknowledged twice, which is a conflict (T-10).
import type { MessageId } from '../../core/message-id.js';
import { AckSet } from './ack-set.js';
import { BatchEntry } from './batch-acks.js';
import type { Connection } from './connection.js';
import type { EntryAcks } from './entry-acks.js';
import type { PendingAcks } from './pending-acks.js';
import type { MessageIdData } from './protocol/message-metadata.js';
import type { ConsumerSpec } from './subscribe-command.js';
import type { OpenTransaction } from '../../transactions/open-transaction.js';

const INDIVIDUAL = 0;

/** The consumer, as far as it is needed here. */
export interface SettlingConsumer {
  readonly topic: string;
  /** @throws TransportError while nothing can be settled. */
  checkSettles(): Connection;
}

export interface TransactionalAcksParts {
  readonly consumerId: number;
  readonly spec: ConsumerSpec;
  readonly entryAcks: EntryAcks;
  readonly acks: PendingAcks;
}

export class TransactionalAcks {
  readonly #consumer: SettlingConsumer;
  readonly #parts: TransactionalAcksParts;
  /** What fails those that wait for an answer. */
  readonly #waiting = new Set<(error: Error) => void>();

  constructor(consumer: SettlingConsumer, parts: TransactionalAcksParts) {
    this.#consumer = consumer;
    this.#parts = parts;
  }

  /**
   * Resolves once it is in there. @param sending called just before the broker is asked for it.
   * @throws TransportError TRANSACTION_CONFLICT, TRANSACTION_ENDED, CONNECTION_LOST, ...
   */
  async acknowledge(transaction: OpenTransaction, ids: readonly MessageId[], sending: () => void): Promise<void> {
    const { topic } = this.#consumer;
    this.#consumer.checkSettles();
    await transaction.addSubscription(topic, this.#parts.spec.subscription);
    transaction.checkMayChange();
    const connection = this.#consumer.checkSettles();
    // Where a broker sends nothing by itself after an abort, whoever aborts asks: so the port has it of every transport (T-17).
    transaction.join({ committed: () => this.#committed(ids), aborted: () => undefined });
    const { mostBits: txnidMostBits, leastBits: txnidLeastBits } = transaction.id;
    const messageId = this.#onlyThese(ids);
    const body = { consumerId: this.#parts.consumerId, ackType: INDIVIDUAL, messageId, txnidLeastBits, txnidMostBits };
    sending();
    await this.#unlessDetached(connection.requestAck(body, topic));
  }

  /** The consumer is detached: the broker answers no more. */
  failAll(error: Error): void {
    for (const fail of this.#waiting) fail(error);
  }

  async #unlessDetached(answer: Promise<unknown>): Promise<void> {
    let fail: (error: Error) => void = () => undefined;
    const detached = new Promise<never>((_, reject) => (fail = reject));
    this.#waiting.add(fail);
    try {
      await Promise.race([answer, detached]);
    } finally {
      this.#waiting.delete(fail);
    }
  }

  #onlyThese(ids: readonly MessageId[]): readonly MessageIdData[] {
    const { chunked, batches } = this.#parts.entryAcks;
    const data: MessageIdData[] = [];
    const parts = new Map<string, BatchEntry>();
    for (const id of ids) {
      const entries = chunked.get(id)?.entries;
      if (entries !== undefined || id.batchIndex < 0) {
        data.push(...(entries ?? [id]).map(({ ledgerId, entryId }) => ({ ledgerId, entryId })));
        continue;
      }
      const key = `${id.ledgerId}:${id.entryId}`;
      const part = parts.get(key) ?? new BatchEntry(id, new AckSet(batches.sizeOf(id)));
      part.acknowledge(id.batchIndex);
      parts.set(key, part);
    }
    // In a transaction the size of the batch is needed with the whole of it, too.
    return [...data, ...[...parts.values()].map((part) => ({ ...part.idData(), batchSize: part.own.size }))];
  }

  /**
   * What is acknowledged here is known from now on. Of a batch of which nothing is left the entry is acknowledged as a
   * whole, as always: a broker may have forgotten what was acknowledged of it message by message.
   */
  #committed(ids: readonly MessageId[]): void {
    const { entryAcks, acks } = this.#parts;
    for (const id of ids) {
      const chunked = entryAcks.chunked.get(id);
      if (chunked !== undefined) entryAcks.confirmed([chunked]);
      else if (id.batchIndex >= 0) {
        const item = entryAcks.acknowledge(id);
        if (item instanceof BatchEntry && item.own.isEmpty) acks.add(item).catch(() => undefined);
      }
    }
  }
}
