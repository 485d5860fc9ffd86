// Faults that the transaction model must find: each takes one step out of the broker, or does it wrongly, and says which rules tell
// of it. A model that misses one proves nothing.
import { SharedDispatcher } from '../../../src/broker/shared-dispatcher.js';
import { TopicLog } from '../../../src/broker/topic-log.js';
import { TopicSubscription } from '../../../src/broker/topic-subscription.js';
import { BufferRecords } from '../../../src/broker/transactions/buffer-records.js';
import { OpenTransactions } from '../../../src/broker/transactions/open-transactions.js';
import { PendingAcks } from '../../../src/broker/transactions/pending-acks.js';
import { PendingState } from '../../../src/broker/transactions/pending-state.js';
import { SubscriptionAcks } from '../../../src/broker/transactions/subscription-acks.js';
import { TransactionBuffer } from '../../../src/broker/transactions/transaction-buffer.js';
import { TxnMetadataStore } from '../../../src/broker/transactions/txn-metadata-store.js';
import type { Rule } from './observer.js';

export interface Breakage {
  readonly what: string;
  /** Any of them. */
  readonly rules: readonly Rule[];
  /** @returns what mends it again */
  readonly make: () => () => void;
}

/** Replaces a method for all objects of a class. */
function replaced<T extends object, Name extends keyof T>(
  of: T,
  name: Name,
  instead: (original: T[Name]) => T[Name],
): () => () => void {
  return () => {
    const original = of[name];
    of[name] = instead(original);
    return () => void (of[name] = original);
  };
}

const nothing = async (): Promise<void> => undefined;

export const BREAKAGES: readonly Breakage[] = [
  {
    what: 'messages of an open transaction are not hidden',
    rules: ['isolated'],
    make: replaced(TopicLog.prototype, 'hideFrom', () => () => undefined),
  },
  {
    what: 'a reader goes on behind the first message of an open transaction',
    rules: ['order'],
    make: replaced(
      TopicLog.prototype,
      'hideFrom',
      (hideFrom) =>
        function (this: TopicLog, position) {
          hideFrom.call(this, this.entryAt(position + 1)?.transaction === undefined ? Infinity : position);
        },
    ),
  },
  {
    what: 'messages of a second transaction on a topic are committed with the first',
    rules: ['isolated', 'atomic', 'durable', 'order'],
    make: replaced(
      TransactionBuffer.prototype,
      'appended',
      (appended) =>
        function (this: TransactionBuffer, transaction, position, stored) {
          if (!/[13579]$/.test(transaction)) appended.call(this, transaction, position, stored);
        },
    ),
  },
  {
    what: 'a commit does not count for cumulative acknowledgements',
    rules: ['atomic', 'durable'],
    make: replaced(
      TopicSubscription.prototype,
      'acknowledgeUpTo',
      (acknowledgeUpTo) =>
        function (this: TopicSubscription, consumer, place) {
          return consumer === undefined ? undefined : acknowledgeUpTo.call(this, consumer, place);
        },
    ),
  },
  {
    what: 'a new process does not know what was acknowledged in open transactions',
    rules: ['withheld', 'atomic', 'converged', 'conflict'],
    make: replaced(TxnMetadataStore.prototype, 'acksOf', () => async () => []),
  },
  {
    what: 'a new process does not know which transactions wrote to a topic',
    rules: ['converged', 'left', 'durable', 'isolated', 'atomic'],
    make: replaced(TxnMetadataStore.prototype, 'writesTo', () => async () => []),
  },
  {
    what: 'what was aborted is not recorded, and shown by the next process',
    rules: ['isolated'],
    make: replaced(TxnMetadataStore.prototype, 'writeAborted', () => nothing),
  },
  {
    what: 'headers are collected while somebody needs them',
    rules: ['atomic', 'durable', 'converged', 'left', 'isolated', 'decided'],
    make: replaced(TxnMetadataStore.prototype, 'hasOps', () => async () => false),
  },
  {
    what: 'without notices nobody looks whether transactions have ended',
    rules: ['converged', 'atomic', 'stuck'],
    make: () => {
      const mend = [
        replaced(PendingAcks.prototype, 'used', () => () => undefined)(),
        replaced(TransactionBuffer.prototype, 'used', () => () => undefined)(),
      ];
      return () => {
        for (const each of mend) each();
      };
    },
  },
  {
    what: 'what an abort frees is not sent again',
    rules: ['stuck'],
    make: replaced(SharedDispatcher.prototype, 'freed', () => () => undefined),
  },
  {
    what: 'two transactions may acknowledge the same message',
    rules: ['conflict'],
    make: replaced(
      PendingState.prototype,
      'reserve',
      (reserve) =>
        function (this: PendingState, transaction, parts) {
          try {
            reserve.call(this, transaction, parts);
          } catch {
            // As if nothing stood against it.
          }
        },
    ),
  },
  {
    what: 'what is acknowledged in an open transaction is sent to others',
    rules: ['withheld'],
    make: replaced(SubscriptionAcks.prototype, 'withholds', () => () => false),
  },
  {
    what: 'a transaction that has ended ends again otherwise',
    rules: ['decided'],
    make: replaced(
      TxnMetadataStore.prototype,
      'readHeader',
      (readHeader) =>
        async function (this: TxnMetadataStore, transaction) {
          const found = await readHeader.call(this, transaction);
          return found && { ...found, header: { ...found.header, state: 'OPEN' as const } };
        },
    ),
  },
  {
    what: 'an acknowledgement is answered after the end of its transaction and forgotten',
    rules: ['atomic', 'converged', 'durable', 'left', 'withheld', 'stuck', 'decided'],
    make: replaced(OpenTransactions.prototype, 'checkOpen', () => nothing),
  },
  {
    what: 'operations are deleted before the outcome is recorded',
    rules: ['isolated', 'durable', 'atomic'],
    make: replaced(
      BufferRecords.prototype,
      'write',
      () =>
        async function (this: BufferRecords) {
          await this.removeAll();
        },
    ),
  },
];
