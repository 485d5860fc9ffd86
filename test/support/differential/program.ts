// What a differential program is: subscriptions on one topic and steps on them, made from a seed. Steps name messages by
// where they stand among those that can be meant, so that a step still means something when others are left out.
import type { SubscriptionType } from 'pulsework';
import { SUBSCRIPTION_TYPES } from '../../../src/core/subscription-spec.js';
import { scattered } from '../seeded.js';

/** Consumers that a subscription may have at once. */
const SLOTS = 3;
/** Few, so that they meet each other; the last two share a slot of Key_Shared's ring. */
const KEYS = ['A', 'B', 'C', 'k1', 'key-107', 'key-411'];

const WITHOUT_KEYS: readonly SubscriptionType[] = ['exclusive', 'failover', 'shared'];

export interface SubscriptionPlan {
  readonly type: SubscriptionType;
  readonly initialPosition: 'earliest' | 'latest';
  /**
   * `wide`: there is room for everything, and everything is taken as it comes. `narrow`: nothing is asked for but by
   * `consume` steps, one message at a time.
   */
  readonly flow: 'wide' | 'narrow';
}

export interface PlannedMessage {
  readonly key?: string | undefined;
  readonly orderingKey?: string | undefined;
}

export interface PublishStep<What extends 'publish' | 'batch' = 'publish' | 'batch'> {
  readonly do: What;
  readonly messages: readonly PlannedMessage[];
}

/** `sub` counts the subscriptions of the program, `slot` the consumers of one, `pick` what can be meant, all from 0. */
export type Step =
  | PublishStep<'publish'>
  | PublishStep<'batch'>
  /** `type`: another one than the subscription has, which is its type from then on where nobody is connected (S-05). */
  | { readonly do: 'open'; readonly sub: number; readonly slot: number; readonly type?: SubscriptionType | undefined }
  | { readonly do: 'close'; readonly sub: number; readonly slot: number }
  | { readonly do: 'consume'; readonly sub: number; readonly slot: number; readonly count: number }
  /** `by` is the slot that acknowledges, whoever holds them; -1 for those who hold them. */
  | { readonly do: 'ack'; readonly sub: number; readonly pick: number; readonly count: number; readonly by: number }
  | { readonly do: 'ack-again' | 'ack-up-to'; readonly sub: number; readonly pick: number }
  | { readonly do: 'nack'; readonly sub: number; readonly pick: number; readonly count: number }
  | { readonly do: 'seek'; readonly sub: number; readonly slot: number; readonly to: SeekPlan; readonly pick: number }
  | { readonly do: 'unload' }
  /** What everybody has passed is removed now; a real broker else does so in the background, some time. */
  | { readonly do: 'trim' }
  /** All consumers leave and a new one, with room for everything, sees what is left. */
  | { readonly do: 'finish'; readonly sub: number }
  /** Everything that is held is acknowledged. */
  | { readonly do: 'ack-all'; readonly sub: number };

/** `message` and `time`: one that came before, and when it was published. */
export type SeekPlan = 'earliest' | 'latest' | 'message' | 'time';

export interface Program {
  readonly subscriptions: readonly SubscriptionPlan[];
  readonly steps: readonly Step[];
}

export function programFrom(seed: number): Program {
  return new ProgramMaker(scattered(seed)).make();
}

class ProgramMaker {
  readonly #next: () => number;

  constructor(next: () => number) {
    this.#next = next;
  }

  make(): Program {
    const subscriptions = Array.from({ length: 1 + this.#below(3) }, () => this.#subscription());
    const opening = subscriptions.map((_, sub): Step => ({ do: 'open', sub, slot: 0 }));
    // One in three begins with messages that were there before its subscriptions.
    const first = this.#below(3) === 0 ? [this.#publish(subscriptions), ...opening] : opening;
    const steps = Array.from({ length: 10 + this.#below(16) }, () => this.#step(subscriptions));
    return { subscriptions, steps: [...first, ...steps, ...endOf(subscriptions)] };
  }

  #subscription(): SubscriptionPlan {
    return {
      type: this.#oneOf(['exclusive', 'failover', 'shared', 'shared', 'key-shared', 'key-shared']),
      initialPosition: this.#below(4) === 0 ? 'latest' : 'earliest',
      flow: this.#below(3) === 0 ? 'narrow' : 'wide',
    };
  }

  #step(subscriptions: readonly SubscriptionPlan[]): Step {
    const sub = this.#below(subscriptions.length);
    const slot = this.#below(SLOTS);
    const pick = this.#below(12);
    const count = 1 + this.#below(3);
    const chance = this.#below(100);
    if (chance < 16) return this.#publish(subscriptions);
    if (chance < 26) return this.#batch(subscriptions);
    if (chance < 35) return { do: 'consume', sub, slot, count };
    if (chance < 52) return { do: 'ack', sub, pick, count, by: this.#below(4) === 0 ? slot : -1 };
    if (chance < 54) return { do: 'ack-again', sub, pick };
    if (chance < 58) return { do: 'ack-up-to', sub, pick };
    if (chance < 71) return { do: 'nack', sub, pick, count };
    if (chance < 81) return this.#open(subscriptions, sub, slot);
    if (chance < 89) return { do: 'close', sub, slot };
    if (chance < 96) return { do: 'seek', sub, slot, pick, to: this.#oneOf(['earliest', 'latest', 'message', 'time']) };
    return { do: 'unload' };
  }

  #open(subscriptions: readonly SubscriptionPlan[], sub: number, slot: number): Step {
    if (this.#below(6) > 0) return { do: 'open', sub, slot };
    return { do: 'open', sub, slot, type: this.#oneOf(hasKeys(subscriptions) ? SUBSCRIPTION_TYPES : WITHOUT_KEYS) };
  }

  #publish(subscriptions: readonly SubscriptionPlan[]): Step {
    return { do: 'publish', messages: this.#messages(1 + this.#below(4), subscriptions) };
  }

  /** Of keys as they come, where a batch goes by its first one (K-01). */
  #batch(subscriptions: readonly SubscriptionPlan[]): Step {
    return { do: 'batch', messages: this.#messages(2 + this.#below(4), subscriptions) };
  }

  #messages(count: number, subscriptions: readonly SubscriptionPlan[]): readonly PlannedMessage[] {
    return Array.from({ length: count }, () => {
      const chance = this.#below(10);
      const key = this.#oneOf(KEYS);
      if (chance === 0) return { key, orderingKey: this.#oneOf(KEYS) };
      // Without a key Key_Shared goes by the producer's name, which each broker chooses for itself.
      return chance === 1 && !hasKeys(subscriptions) ? {} : { key };
    });
  }

  #below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }

  #oneOf<T>(values: readonly T[]): T {
    return values[this.#below(values.length)]!;
  }
}

function hasKeys(subscriptions: readonly SubscriptionPlan[]): boolean {
  return subscriptions.some(({ type }) => type === 'key-shared');
}

/** What is left of each subscription, message by message, and that nothing is once it is acknowledged. */
export function endOf(subscriptions: readonly SubscriptionPlan[]): readonly Step[] {
  return subscriptions.flatMap((_, sub): readonly Step[] => [
    { do: 'finish', sub },
    { do: 'ack-all', sub },
  ]);
}
