// What an operator sees and may do with one subscription of a running runtime.
import type { PauseReason } from './pauses.js';

export interface SubscriptionHealth {
  readonly handler: string;
  readonly subscription: string;
  /** Full names. */
  readonly topics: readonly string[];
  /** `degraded`: it works on, but something needs a person; see `reason` and `pausedBy`. */
  readonly state: 'running' | 'paused' | 'degraded' | 'draining';
  readonly reason: string | undefined;
  readonly pausedBy: readonly PauseReason[];
  /** Dependencies of the handler that are down, whichever subscription found out. */
  readonly dependenciesDown: readonly string[];
  /** Runs of the handler going on now. */
  readonly running: number;
  /** Entries whose id waits, unacknowledged, for a due time. */
  readonly held: number;
  /** Deliveries kept with their payload: to run again in place, or to be settled again. */
  readonly kept: number;
}

export interface SubscriptionHandle {
  /** Starts no more runs and takes no more messages until `resume()`. What runs goes on. */
  pause(): void;
  resume(): void;
  health(): SubscriptionHealth;
}
