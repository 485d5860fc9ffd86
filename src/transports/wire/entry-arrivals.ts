// The way of an entry from the broker to a verdict: decoded, judged, in the order of coming. Some wait in line for a codec
// that is not loaded yet; what comes behind them waits with them.
import type { EntryPosition } from '../../core/message-id.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { ChunkLimits } from '../../chunks/chunk.js';
import type { EntryAcks } from './entry-acks.js';
import { decodeArrival } from './entry-decoder.js';
import type { DecodedEntry } from './entry-decoder.js';
import { EntryIntake } from './entry-intake.js';
import type { Verdict } from './entry-intake.js';
import type { CommandBody } from './protocol/commands.js';

/** The registration that an entry came over. */
export interface Registration {
  readonly generation: number;
  readonly maxMessageBytes: number;
}

export interface EntryArrivalsParts {
  readonly topic: string;
  readonly partition: number;
  readonly acks: EntryAcks;
  readonly chunkLimits: ChunkLimits;
  readonly clock: Clock;
  readonly logger: Logger | undefined;
  /** Whether it was sent before everything was asked for again, or is meant for another consumer by now. */
  readonly isStale: (message: CommandBody<'MESSAGE'>) => boolean;
  /** Whether the broker may send more now. */
  readonly mayArrive: () => boolean;
  /** @param charged permits that the broker took for the entry; 0 for what turned out later. */
  readonly judged: (verdict: Verdict, charged: number) => void;
}

const LEAVE: Verdict = { kind: 'leave' };

export class EntryArrivals {
  readonly #parts: EntryArrivalsParts;
  readonly #intake: EntryIntake;
  /** Entries that wait for a codec, in line. */
  #line: Promise<void> | undefined;
  #resets = 0;

  constructor(parts: EntryArrivalsParts) {
    this.#parts = parts;
    this.#intake = new EntryIntake({ ...parts, judged: (verdict) => parts.judged(verdict, 0) });
  }

  /** @param section what stands behind the command: see `decodeEntry`. */
  take(message: CommandBody<'MESSAGE'>, section: Buffer, { generation, maxMessageBytes }: Registration): void {
    const { topic, partition, chunkLimits } = this.#parts;
    const redeliveryCount = this.#intake.redeliveryCount(this.#positionOf(message), message.redeliveryCount ?? 0);
    const limits = { maxMessageBytes, maxChunkedMessageBytes: chunkLimits.maxMessageBytes };
    const place = { topic, partition, redeliveryCount, connection: generation, ...limits };
    const decoded = decodeArrival(message, section, place);
    if (this.#line === undefined && !(decoded instanceof Promise)) return this.#judge(message, decoded);
    const resets = this.#resets;
    const line = (this.#line ?? Promise.resolve())
      .then(() => decoded)
      .then((entry) => {
        if (resets === this.#resets) this.#judge(message, entry);
        if (this.#line === line) this.#line = undefined;
      });
    this.#line = line;
  }

  /** The registration is over: the broker sends again what came over it and is still in line. */
  reset(): void {
    this.#resets += 1;
    this.#line = undefined;
    this.forgetIncomplete();
  }

  /** The same for messages that came in part. */
  forgetIncomplete(): void {
    this.#intake.forgetIncomplete();
  }

  #judge(message: CommandBody<'MESSAGE'>, decoded: DecodedEntry): void {
    const { isStale, judged } = this.#parts;
    const verdict = isStale(message) ? LEAVE : this.#intake.judge(this.#positionOf(message), decoded);
    judged(verdict, decoded.charged);
  }

  #positionOf({ messageId: { ledgerId, entryId } }: CommandBody<'MESSAGE'>): EntryPosition {
    return { ledgerId, entryId, partition: this.#parts.partition };
  }
}
