// What plugins and telemetry may see of a running runtime, and what plugins may ask of it.
import type { DeadLetterCause } from '../core/dead-letter.js';
import type { MessageKey } from '../core/message.js';
import type { Clock } from './clock.js';
import type { Logger } from './logger.js';

/**
 * Why a subscription takes no new messages. `operator`: asked for. `outage`: a dependency is down. `held-full`: as many
 * deliveries wait as may. `lane-full`: one key has as many waiting as may. `abandoned-runs`: more handlers than
 * `concurrency` did not end in time. `broad-failure`: nearly everything failed (`deliveryPause`).
 */
export type PauseReason = 'operator' | 'outage' | 'held-full' | 'lane-full' | 'abandoned-runs' | 'broad-failure';

/** Of a handler with the option `deliveryPause`. */
export interface DeliveryPauseHealth {
  /** `closed`: messages are taken. `open`: none is. `half-open`: some are, to try. */
  readonly state: 'closed' | 'open' | 'half-open';
  /** How often it has opened since the start. */
  readonly opened: number;
  /** Milliseconds of the pause going on, or last, when half-open; 0 when closed. */
  readonly delayMs: number;
}

/** A key, or with `ordering: 'partition'` a partition, whose message was given up and waits for a person. */
export interface BlockedKey {
  /** As it was published; of a partition, the topic's full name. */
  readonly key: MessageKey;
  /** Full name, with its partition. */
  readonly topic: string;
  readonly messageId: string;
  readonly cause: DeadLetterCause;
  readonly reason: string;
  /** Messages of the key that are here and wait behind it. */
  readonly waiting: number;
}

export interface SubscriptionHealth {
  readonly handler: string;
  readonly subscription: string;
  /** Full names; of a pattern, the topics that it is connected to now. */
  readonly topics: readonly string[];
  /** `degraded`: it works on, but something needs a person; see `reason` and `pausedBy`. */
  readonly state: 'running' | 'paused' | 'degraded' | 'draining';
  /** Why it is `degraded`; or why nothing comes any more, although nothing is wrong. */
  readonly reason: string | undefined;
  readonly pausedBy: readonly PauseReason[];
  /** Dependencies of the handler that are down, whichever subscription found out. */
  readonly dependenciesDown: readonly string[];
  /** Runs of the handler going on now. */
  readonly running: number;
  /** Milliseconds since the oldest of them started; undefined when none runs. */
  readonly oldestRunMs: number | undefined;
  /** When the last run started, epoch milliseconds; undefined before the first. */
  readonly lastDeliveryMs: number | undefined;
  /** Entries whose id waits, unacknowledged, for a due time. */
  readonly held: number;
  /** Milliseconds since the first failure of the message that has been failing longest here; undefined when none does. */
  readonly oldestFailureMs: number | undefined;
  /** Deliveries kept with their payload: to run again in place, or to be settled again. */
  readonly kept: number;
  /** Deliveries given up that wait for a person (`deadLetter: 'block'`, `onDeadLetter: 'block-key'`). */
  readonly blocked: number;
  /** Keys with messages waiting behind one that is not settled, with `ordering`. */
  readonly waitingKeys: number;
  /** The key with as many messages waiting as may, which keeps new ones of all keys away; undefined when there is none. */
  readonly fullKey: string | undefined;
  /** Deliveries that wait because their key has its share of runs, with `fairness`. */
  readonly throttled: number;
  /** Undefined without the option `deliveryPause`. */
  readonly deliveryPause: DeliveryPauseHealth | undefined;
  /** Messages of the subscription that are not acknowledged; undefined where the transport does not know. */
  readonly backlog: number | undefined;
}

/** Of a runtime with the option `outbox`. */
export interface OutboxHealth {
  /** The store's name. */
  readonly store: string;
  /** `standby`: another process relays it. `failing`: the store cannot be used now. */
  readonly role: 'leading' | 'standby' | 'failing';
  /** Why it is `failing`, or why publishing fails at present. */
  readonly reason: string | undefined;
  /** Messages published by this process since its start. */
  readonly relayed: number;
  /** Messages in this process that are not published yet. */
  readonly claimed: number;
  /** Messages that are neither published nor refused, at most a second ago, counted up to 100,000; 0 where this process does not lead. */
  readonly waiting: number;
  /** Messages that wait for a person; 0 where this process does not lead. */
  readonly refused: number;
  /**
   * Milliseconds since the oldest message was added that is neither published nor refused, at most a second ago; undefined
   * when there is none, or where this process does not lead.
   */
  readonly oldestMs: number | undefined;
}

export interface RuntimeView {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The transport's name. */
  readonly transport: string;
  health(): readonly SubscriptionHealth[];
  /** Undefined without the option `outbox`. */
  outboxHealth?(): OutboxHealth | undefined;
}

/** What a plugin gets at start. */
export interface RuntimeControl extends RuntimeView {
  /** `Runtime.drain`; must not be awaited inside a hook, which it waits for. */
  drain(): Promise<unknown>;
  /** `Runtime.close`: the drain's deadline is now, also of one that is under way. */
  close(): Promise<unknown>;
}
