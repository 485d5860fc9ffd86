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
  readonly #forgotten: (name: string) => void;
  /** By producer name. */
  readonly #sequences = new Map<string, Sequence>();
  /** Names of producers that are connected, or in line. */
  readonly #live = new Set<string>();
  /** Of every other name that is known: when its last producer left or published, the one that did first first. */
  readonly #inactiveSince = new Map<string, number>();

  /** @param forgotten told the name of a producer that is not known any more. */
  constructor(clock: Clock, forgotten: (name: string) => void = () => undefined) {
    this.#clock = clock;
    this.#forgotten = forgotten;
  }

  /** What an earlier broker knew. */
  restore(sequenceIds: ReadonlyMap<string, number>): void {
    for (const [name, stored] of sequenceIds) {
      this.#sequences.set(name, { pushed: stored, stored });
      this.#inactive(name);
    }
  }

  /** The highest sequence id that was taken of producers of this name; -1 for none. */
  lastSequenceId(name: string): number {
    return this.#sequences.get(name)?.pushed ?? -1;
  }

  /**
   * An entry is on its way to the store; false for a repetition, which must not go there. Of a batch the lowest id is
   * compared and the highest is recorded: a batch that overlaps by one id is a repetition as a whole. Of a message in
   * chunks only the last one is looked at: what was stored of it before stays, and consumers get rid of it.
   * @throws TransportError BROKER_ERROR, retriable, while it may be a repetition of what the store has not confirmed.
   */
  pushed(entry: Entry): boolean {
    if (isBeforeLastChunk(entry)) return true;
    const { producerName, sequenceId } = entry;
    const highest = highestOf(entry);
    if (!this.#live.has(producerName)) this.#inactive(producerName);
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

  /** What is to be known again once the entry is stored; undefined where it says nothing. */
  highestSequenceId(entry: Entry): number | undefined {
    return isBeforeLastChunk(entry) ? undefined : highestOf(entry);
  }

  stored(entry: Entry): void {
    if (isBeforeLastChunk(entry)) return;
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
    this.#inactiveSince.delete(name);
    this.#live.add(name);
  }

  /** By itself, or because it was shut out or cut off. */
  producerLeft(name: string): void {
    this.#live.delete(name);
    this.#inactive(name);
  }

  #inactive(name: string): void {
    this.#forgetInactive();
    this.#inactiveSince.delete(name);
    this.#inactiveSince.set(name, this.#clock.now());
  }

  /** When producers come and go, or others publish, is often enough, and needs no timer. */
  #forgetInactive(): void {
    const before = this.#clock.now() - FORGOTTEN_AFTER_MS;
    for (const [name, sinceMs] of this.#inactiveSince) {
      if (sinceMs > before) return;
      this.#inactiveSince.delete(name);
      if (this.#sequences.delete(name)) this.#forgotten(name);
    }
  }
}

function isBeforeLastChunk({ chunk }: Entry): boolean {
  return chunk !== undefined && chunk.index < chunk.count - 1;
}

/** Messages of a batch have consecutive ids. */
function highestOf({ sequenceId, messageCount }: Entry): number {
  return sequenceId + messageCount - 1;
}

function undecided(): TransportError {
  const text = 'Cannot determine whether the message is a duplicate at this time';
  return new TransportError('BROKER_ERROR', text, { retriable: true });
}
