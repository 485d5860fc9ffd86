// Decides what becomes of an entry that arrived: handed on, got rid of, asked for again, or left at the broker. Nothing
// that cannot be handed on goes without a line in the log.
import type { ReceivedMessage } from '../../core/message.js';
import type { EntryPosition } from '../../core/message-id.js';
import type { Logger } from '../../ports/logger.js';
import type { BatchAcks } from './batch-acks.js';
import type { DecodedEntry } from './entry-decoder.js';
import { VALIDATION_ERRORS } from './protocol/frames.js';
import { SuspectEntries } from './suspect-entries.js';

export type Verdict =
  | { readonly kind: 'hand-on'; readonly messages: readonly ReceivedMessage[] }
  /** Acknowledge it; with the reason where it is one that brokers know. */
  | { readonly kind: 'get-rid'; readonly validationError: number | undefined }
  | { readonly kind: 'ask-back' }
  /** Neither delivered nor acknowledged: another consumer, or a later version of this one, may read it. */
  | { readonly kind: 'leave' };

const GET_RID: Verdict = { kind: 'get-rid', validationError: undefined };

export class EntryIntake {
  readonly #topic: string;
  readonly #batchAcks: BatchAcks;
  readonly #logger: Logger | undefined;
  readonly #suspects = new SuspectEntries();
  #unreadable = 0;

  constructor(topic: string, batchAcks: BatchAcks, logger: Logger | undefined) {
    this.#topic = topic;
    this.#batchAcks = batchAcks;
    this.#logger = logger;
  }

  /** The broker's count without the redeliveries that were asked for because of a checksum. */
  redeliveryCount(position: EntryPosition, brokersCount: number): number {
    return Math.max(0, brokersCount - this.#suspects.askedBack(position));
  }

  judge(position: EntryPosition, entry: DecodedEntry): Verdict {
    switch (entry.kind) {
      case 'messages':
        return this.#handOn(position, entry);
      case 'marker':
        return GET_RID;
      case 'unreadable':
        this.#tellUnreadable(position, entry.reason);
        return { kind: 'leave' };
      case 'corrupt':
        return this.#corrupt(position, entry.reason);
    }
  }

  #handOn(position: EntryPosition, entry: Extract<DecodedEntry, { kind: 'messages' }>): Verdict {
    if (entry.left === undefined) return { kind: 'hand-on', messages: entry.messages };
    const left = this.#batchAcks.arrived(position, entry.left);
    // All of it was acknowledged here, or compacted away: the broker has to hear of it (again), or it stays for ever.
    if (left.isEmpty) return GET_RID;
    if (left === entry.left) return { kind: 'hand-on', messages: entry.messages };
    return { kind: 'hand-on', messages: entry.messages.filter(({ id }) => left.has(id.batchIndex)) };
  }

  #corrupt(position: EntryPosition, reason: string): Verdict {
    const again = this.#suspects.arrivedCorrupt(position);
    const what = again ? 'is asked for again' : 'is dropped for good';
    this.#logger?.error(`${this.#name(position)} is corrupt and ${what}: ${reason}`);
    return again ? { kind: 'ask-back' } : { kind: 'get-rid', validationError: VALIDATION_ERRORS.checksum };
  }

  /** A topic full of them must not fill the log: the 1st, the 10th, the 100th and so on are told. */
  #tellUnreadable(position: EntryPosition, reason: string): void {
    this.#unreadable += 1;
    if (!/^10*$/.test(String(this.#unreadable))) return;
    const count = `${this.#unreadable} so far`;
    this.#logger?.error(`${this.#name(position)} cannot be read and stays unacknowledged (${count}): ${reason}`);
  }

  #name({ ledgerId, entryId }: EntryPosition): string {
    return `entry ${ledgerId}:${entryId} of ${this.#topic}`;
  }
}
