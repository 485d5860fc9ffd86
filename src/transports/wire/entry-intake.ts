// Decides what becomes of an entry that arrived: handed on, got rid of, asked for again, or left at the broker. Nothing
// that cannot be handed on goes without a line in the log.
import type { ReceivedMessage } from '../../core/message.js';
import type { EntryPosition } from '../../core/message-id.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { ChunkLimits } from '../../chunks/chunk.js';
import { ChunkJoiner } from '../../chunks/chunk-joiner.js';
import type { ChunkVerdict } from '../../chunks/chunk-joiner.js';
import { ChunkedMessage } from '../../chunks/chunked-acks.js';
import { UnreadableEntries } from '../../chunks/unreadable-entries.js';
import type { EntryAcks } from './entry-acks.js';
import { decodeJoined } from './entry-decoder.js';
import type { DecodedEntry } from './entry-decoder.js';
import { VALIDATION_ERRORS } from './protocol/frames.js';
import { SuspectEntries } from './suspect-entries.js';

export type Verdict =
  | { readonly kind: 'hand-on'; readonly messages: readonly ReceivedMessage[] }
  /** Acknowledge it; with the reason where it is one that brokers know. */
  | { readonly kind: 'get-rid'; readonly entries: readonly EntryPosition[]; readonly validationError?: number }
  | { readonly kind: 'ask-back'; readonly entries: readonly EntryPosition[] }
  /** Neither delivered nor acknowledged: it is kept here, or another consumer, or a later version of this one, may read it. */
  | { readonly kind: 'leave' };

const LEAVE: Verdict = { kind: 'leave' };

export interface EntryIntakeParts {
  readonly topic: string;
  readonly acks: EntryAcks;
  readonly chunkLimits: ChunkLimits;
  readonly clock: Clock;
  readonly logger: Logger | undefined;
  /** Whether the broker may send more now. */
  readonly mayArrive: () => boolean;
  /** Carries out what turned out later than with an arrival. */
  readonly judged: (verdict: Verdict) => void;
}

export class EntryIntake {
  readonly #parts: EntryIntakeParts;
  readonly #chunks: ChunkJoiner;
  readonly #suspects = new SuspectEntries();
  readonly #unreadable: UnreadableEntries;

  constructor(parts: EntryIntakeParts) {
    this.#parts = parts;
    const { topic, chunkLimits: limits, acks, clock, logger, mayArrive, judged } = parts;
    this.#unreadable = new UnreadableEntries(topic, logger);
    this.#chunks = new ChunkJoiner({
      ...{ limits, acks: acks.chunked, clock, mayArrive },
      gaveUp: ([first], reason) => (first === undefined ? undefined : this.#unreadable.tell(first, reason)),
      needless: (entries) => judged({ kind: 'get-rid', entries }),
    });
  }

  /** Messages of which a part is here: all of it comes again, or goes to another consumer. */
  forgetIncomplete(): void {
    this.#chunks.reset();
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
        return { kind: 'get-rid', entries: [position] };
      case 'chunk':
        return this.#join(position, entry);
      case 'unreadable':
        this.#unreadable.tell(position, entry.reason);
        return LEAVE;
      case 'corrupt':
        return this.#corrupt(position, entry.reason);
    }
  }

  #handOn(position: EntryPosition, entry: Extract<DecodedEntry, { kind: 'messages' }>): Verdict {
    if (entry.left === undefined) return { kind: 'hand-on', messages: entry.messages };
    const { left, own } = this.#parts.acks.batches.arrived(position, entry.left, entry.gone);
    // All of it was acknowledged here, or compacted away: the broker has to hear of it (again), or it stays for ever.
    if (own.isEmpty || (left.isEmpty && entry.gone !== undefined)) return { kind: 'get-rid', entries: [position] };
    if (left.count === entry.messages.length) return { kind: 'hand-on', messages: entry.messages };
    return { kind: 'hand-on', messages: entry.messages.filter(({ id }) => left.has(id.batchIndex)) };
  }

  #join(position: EntryPosition, entry: Extract<DecodedEntry, { kind: 'chunk' }>): Verdict {
    const verdict = this.#chunks.add(position, entry.chunk, entry.whole.entry.payload);
    switch (verdict.kind) {
      case 'kept':
        return LEAVE;
      case 'needless':
        return { kind: 'get-rid', entries: [position] };
      case 'ask-back':
        return verdict;
      case 'joined':
        return this.#handOnJoined(position, entry, verdict);
      case 'unreadable':
        this.#unreadable.tell(position, verdict.reason);
        return LEAVE;
    }
  }

  #handOnJoined(
    position: EntryPosition,
    { whole, chunk }: Extract<DecodedEntry, { kind: 'chunk' }>,
    { message: joined, askedBack }: Extract<ChunkVerdict, { kind: 'joined' }>,
  ): Verdict {
    const { first, last, entries, payload } = joined;
    const message = decodeJoined(whole, payload, { first, last, askedBack });
    if (typeof message === 'string') {
      this.#unreadable.tell(position, message);
      return LEAVE;
    }
    const { key, publishTimeMs } = chunk;
    this.#parts.acks.chunked.joined(new ChunkedMessage({ key, publishTimeMs, first, last }, entries));
    return { kind: 'hand-on', messages: [message] };
  }

  #corrupt(position: EntryPosition, reason: string): Verdict {
    const again = this.#suspects.arrivedCorrupt(position);
    const what = again ? 'is asked for again' : 'is dropped for good';
    this.#parts.logger?.error(`${this.#unreadable.nameOf(position)} is corrupt and ${what}: ${reason}`);
    if (again) return { kind: 'ask-back', entries: [position] };
    return { kind: 'get-rid', entries: [position], validationError: VALIDATION_ERRORS.checksum };
  }
}
