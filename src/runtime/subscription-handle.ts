// What an operator may do with one subscription of a running runtime.
import type { SubscriptionHealth } from '../ports/runtime-view.js';

export interface SubscriptionHandle {
  /** Starts no more runs and takes no more messages until `resume()`. What runs goes on. */
  pause(): void;
  resume(): void;
  health(): SubscriptionHealth;
}
