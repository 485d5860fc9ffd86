// What an operator may do with one subscription of a running runtime.
import type { MessageKey } from '../core/message.js';
import type { BlockedKey, SubscriptionHealth } from '../ports/runtime-view.js';

export interface SubscriptionHandle {
  /** Starts no more runs and takes no more messages until `resume()`. What runs goes on. */
  pause(): void;
  resume(): void;
  /** With `onDeadLetter: 'block-key'`: the keys that wait for a person here, in this process. */
  blockedKeys(): readonly BlockedKey[];
  /**
   * Runs the message that blocks `key` again, with fresh attempts.
   * @param key as `blockedKeys` gives it. @returns false when none does. @throws ConfigurationError for what is no key
   */
  release(key: MessageKey): boolean;
  /**
   * Gives the message that blocks `key` up, as `deadLetter` says, and goes on with its key.
   * @param key as `blockedKeys` gives it. @returns false when none does. @throws ConfigurationError for what is no key
   */
  skip(key: MessageKey): boolean;
  health(): SubscriptionHealth;
}
