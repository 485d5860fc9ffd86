// Deduplication of one topic (S-44): the highest sequence id of each producer name, and what that says of a message. What
// is known belongs to the topic, so an unload and a restart keep it.
import { TransportError } from '../core/errors.js';
import { hours } from '../core/options.js';
import type { Clock } from '../ports/clock.js';
import type { Entry } from './entry.js';

/** As Pulsar's brokerDeduplicationProducerInactivityTimeoutMinutes. */
const FORGOTTEN_AFTER_MS = hours(6);

interface Sequence {
  /** The highest that was handed to the store. */
  pushed: number;
  /** The highest that the store has. */
  stored: number;
}

export class Deduplication {
  readonly #clock: Clock;
  /** By producer name. */
  readonly #sequences = new Map<string, Sequence>();
  /** When the last producer of a name left, the one that left first first. */
  readonly #leftAt = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The highest sequence id that was taken of producers of this name; -1 for none. */
  lastSequenceId(name: string): number {
    return this.#sequences.get(name)?.pushed ?? -1;
  }

  /**
   * An entry is on its way to the store; false for a repetition, which must not go there. Of a batch the lowest id is
   * compared and the highest is recorded: a batch that overlaps by one id is a repetition as a whole.
   * @throws TransportError BROKER_ERROR, retriable, while it may be a repetition of what the store has not confirmed.
   */
  pushed(entry: Entry): boolean {
    const { producerName, sequenceId } = entry;
    const highest = highestOf(entry);
    const known = this.#sequences.get(producerName);
    if (known === undefined) {
      this.#sequences.set(producerName, { pushed: highest, stored: -1 });
      return true;
    }
    if (sequenceId <= known.stored) return false;
    if (sequenceId <= known.pushed) throw undecided();
    known.pushed = highest;
    return true;
  }

  stored(entry: Entry): void {
    const known = this.#sequences.get(entry.producerName);
    if (known !== undefined) known.stored = Math.max(known.stored, highestOf(entry));
  }

  /** What was pushed of this name beyond what the store has may be published again. */
  failed({ producerName }: Entry): void {
    const known = this.#sequences.get(producerName);
    if (known !== undefined) known.pushed = known.stored;
  }

  producerCame(name: string): void {
    this.#forgetInactive();
    this.#leftAt.delete(name);
  }

  producerLeft(name: string): void {
    this.#forgetInactive();
    this.#leftAt.delete(name);
    this.#leftAt.set(name, this.#clock.now());
  }

  /** When producers come and go is often enough, and needs no timer. */
  #forgetInactive(): void {
    const before = this.#clock.now() - FORGOTTEN_AFTER_MS;
    for (const [name, leftMs] of this.#leftAt) {
      if (leftMs > before) return;
      this.#leftAt.delete(name);
      this.#sequences.delete(name);
    }
  }
}

/** Messages of a batch have consecutive ids. */
function highestOf({ sequenceId, messageCount }: Entry): number {
  return sequenceId + messageCount - 1;
}

function undecided(): TransportError {
  const text = 'Cannot determine whether the message is a duplicate at this time';
  return new TransportError('BROKER_ERROR', text, { retriable: true });
}
