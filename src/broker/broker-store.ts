// The seam behind which a topic's entries and cursors are kept. Everything also stays in memory; a store only says when
// a receipt may be given, so that one with group commit fits here.
import type { Entry } from './entry.js';

/** Undefined when it is stored already, else a promise of it. Saves a promise per message where storing is immediate. */
export type Stored = Promise<void> | undefined;

export interface EntryAddress {
  /** Full topic name, with its partition. */
  readonly topic: string;
  readonly ledgerId: number;
  readonly entryId: number;
}

export interface AcknowledgementRecord {
  readonly topic: string;
  readonly subscription: string;
  readonly ledgerId: number;
  readonly entryId: number;
  /** One message of a batch; -1 for the whole entry. */
  readonly batchIndex: number;
  /** Everything up to and including this. */
  readonly cumulative: boolean;
}

export interface BrokerStore {
  /** Appends of one topic must complete in the order of the calls. A rejection fails that publish alone. */
  append(address: EntryAddress, entry: Entry): Stored;
  acknowledge(record: AcknowledgementRecord): Stored;
  /** A message, or a batch, went over a topic that is not persistent: it is told, and not to be kept for anybody. */
  passed?(topic: string, entry: Entry): void;
}

/** Nothing beyond memory: all is stored at once. */
export const memoryStore: BrokerStore = {
  append: () => undefined,
  acknowledge: () => undefined,
};
