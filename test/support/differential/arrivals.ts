// What a differential program has seen of one subscription: what came in the step that is under way, what its consumers hold,
// and every message that ever came, since an id may be used again.
import type { ReceivedMessage } from 'pulsework';
import { compareMessageIds } from 'pulsework';
import { sameEntry } from '../../../src/core/message-id.js';

export interface Arrival {
  readonly slot: number;
  readonly message: ReceivedMessage;
}

/** One arrival in the form in which two brokers are compared: ids, times and producers are each broker's own. */
export interface SeenArrival {
  readonly slot: number;
  /** Text, place in its batch, and count, e.g. `m03 2/4 #1`. */
  readonly text: string;
}

const decoder = new TextDecoder();

export class Arrivals {
  #step: Arrival[] = [];
  readonly #held = new Map<string, Arrival>();
  readonly #all = new Map<string, ReceivedMessage>();

  came(slot: number, message: ReceivedMessage): void {
    const text = textOf(message);
    this.#step.push({ slot, message });
    // Behind the others: the newest delivery is the one that counts.
    this.#held.delete(text);
    this.#held.set(text, { slot, message });
    this.#all.set(text, message);
  }

  beginStep(): void {
    this.#step = [];
  }

  /** What came in this step, in order. */
  step(): readonly SeenArrival[] {
    return this.#step.map(seen);
  }

  /** What is held, in the order in which it came. */
  held(): readonly SeenArrival[] {
    return [...this.#held.values()].map(seen);
  }

  heldTexts(): readonly string[] {
    return [...this.#held.keys()].sort();
  }

  /** Every text that ever came. */
  knownTexts(): readonly string[] {
    return [...this.#all.keys()].sort();
  }

  holderOf(text: string): Arrival | undefined {
    return this.#held.get(text);
  }

  /** As it came last. */
  known(text: string): ReceivedMessage | undefined {
    return this.#all.get(text);
  }

  release(text: string): void {
    this.#held.delete(text);
  }

  releaseEntryOf(message: ReceivedMessage): void {
    this.#releaseWhere((held) => sameEntry(held.message.id, message.id));
  }

  releaseUpTo(message: ReceivedMessage): void {
    this.#releaseWhere((held) => compareMessageIds(held.message.id, message.id) <= 0);
  }

  releaseSlot(slot: number): void {
    this.#releaseWhere((held) => held.slot === slot);
  }

  releaseAll(): void {
    this.#held.clear();
  }

  #releaseWhere(isIt: (held: Arrival) => boolean): void {
    for (const [text, held] of this.#held) if (isIt(held)) this.#held.delete(text);
  }
}

function textOf({ payload }: ReceivedMessage): string {
  return decoder.decode(payload ?? new Uint8Array());
}

function seen({ slot, message }: Arrival): SeenArrival {
  const { batchIndex, batchSize } = message.id;
  const place = batchIndex < 0 ? '' : ` ${batchIndex + 1}/${batchSize}`;
  return { slot, text: `${textOf(message)}${place} #${message.redeliveryCount}` };
}
