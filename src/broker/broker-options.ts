// The limits of the embedded broker, with the values of a Pulsar broker where it has the same one.
import { describeValue } from '../core/errors.js';
import { OptionChecker, seconds } from '../core/options.js';
import type { Clock } from '../ports/clock.js';

export interface BrokerOptions {
  /** Entries after which a ledger is full and may be trimmed once everyone has passed it, at most 16,777,216. @default 10,000 */
  readonly maxLedgerEntries?: number | undefined;
  /** The same in bytes. @default 16 MiB */
  readonly maxLedgerBytes?: number | undefined;
  /** Largest message, or producer batch: payload, properties and keys. @default 5 MiB, as Pulsar's maxMessageSize */
  readonly maxMessageBytes?: number | undefined;
  /** From a change of the active Failover consumer to its first message, milliseconds (S-03). @default 1 second */
  readonly activeConsumerFailoverDelayMs?: number | undefined;
  /** Unacknowledged messages at which a Shared or Key_Shared consumer gets no more, until half (S-12). @default 50,000 */
  readonly maxUnackedPerConsumer?: number | undefined;
  /** Unacknowledged messages at which a Shared or Key_Shared subscription reads no new ones, until half (S-12). @default 200,000 */
  readonly maxUnackedPerSubscription?: number | undefined;
  /** Entries that Key_Shared may put aside for consumers that cannot take them, per consumer (K-14). @default 2,000 */
  readonly keySharedLookAheadPerConsumer?: number | undefined;
  /** The same per subscription. @default 20,000 */
  readonly keySharedLookAheadPerSubscription?: number | undefined;
  /** Messages that a Shared consumer gets before it is the next one's turn (S-04). @default 20 */
  readonly roundRobinChunk?: number | undefined;
  /**
   * Whether Key_Shared places consumers on a ring (K-05); false: each new one takes half of the largest range (K-06).
   * @default true, as subscriptionKeySharedUseConsistentHashing
   */
  readonly keySharedConsistentHashing?: boolean | undefined;
  /**
   * Whether an ordered Key_Shared sends nothing later of a key than a message that failed, until that is acknowledged
   * (PIP-493, K-24); false: such negative acknowledgements are ignored, as today's brokers do.
   * @default true, as keySharedNegativeAckOrderingEnabled
   */
  readonly keySharedNegativeAckOrdering?: boolean | undefined;
  /**
   * Failed entries of a Key_Shared subscription at which it sends nothing but what these wait for (K-31).
   * @default 50,000, as keySharedNegativeAckMaxRetryingPositionsPerSubscription
   */
  readonly keySharedMaxRetryingPositions?: number | undefined;
  /**
   * Whether topics keep the highest sequence id of each producer name and drop what was published before: the receipt of a
   * repetition is -1:-1 (S-44). @default false, as brokerDeduplicationEnabled
   */
  readonly deduplication?: boolean | undefined;
  /**
   * Milliseconds after which a message counts as acknowledged in every subscription, looked at every 5 minutes (S-29), by a
   * timer that keeps the process alive; 0 for never, without a timer. @default 0, as ttlDurationDefaultInSeconds
   */
  readonly messageTtlMs?: number | undefined;
  /**
   * How far ahead a delivery time may lie, in milliseconds: a publish beyond it fails with NOT_ALLOWED (Y-08); 0 for any.
   * @default 0, as delayedDeliveryMaxDelayInMillis
   */
  readonly maxDeliveryDelayMs?: number | undefined;
}

export type ResolvedBrokerOptions = { readonly [K in keyof BrokerOptions]-?: NonNullable<BrokerOptions[K]> };

export const DEFAULT_BROKER_OPTIONS: ResolvedBrokerOptions = {
  maxLedgerEntries: 10_000,
  maxLedgerBytes: 16 * 1024 * 1024,
  maxMessageBytes: 5 * 1024 * 1024,
  activeConsumerFailoverDelayMs: seconds(1),
  maxUnackedPerConsumer: 50_000,
  maxUnackedPerSubscription: 200_000,
  keySharedLookAheadPerConsumer: 2_000,
  keySharedLookAheadPerSubscription: 20_000,
  roundRobinChunk: 20,
  keySharedConsistentHashing: true,
  keySharedNegativeAckOrdering: true,
  keySharedMaxRetryingPositions: 50_000,
  deduplication: false,
  messageTtlMs: 0,
  maxDeliveryDelayMs: 0,
};

const SWITCHES: readonly string[] = ['keySharedConsistentHashing', 'keySharedNegativeAckOrdering', 'deduplication'];
const DURATIONS: readonly string[] = ['activeConsumerFailoverDelayMs', 'messageTtlMs', 'maxDeliveryDelayMs'];

/** What a store can number with a ledger in one integer of JavaScript. */
const MAX_LEDGER_ENTRIES = 2 ** 24;

const OPTION_NAMES = Object.keys(DEFAULT_BROKER_OPTIONS) as (keyof BrokerOptions)[];

interface Parts {
  readonly clock: unknown;
  readonly store?: unknown;
  readonly pendingAcks?: unknown;
}

/** What of a broker's options is no number or switch; `transactions` are checked by those. */
export function checkParts({ clock, store, pendingAcks }: Parts, check: OptionChecker): void {
  const { now, setTimer } = (clock as Partial<Clock> | null | undefined) ?? {};
  if (typeof now !== 'function' || typeof setTimer !== 'function')
    check.problem(`"clock" must be a Clock, got ${describeValue(clock)}`);
  check.methods('store', store, ['append', 'acknowledge'], 'leave it out for memory alone');
  check.methods('pendingAcks', pendingAcks, ['open'], 'leave it out for no transactions');
}

/**
 * @param checkMore checks what is no number or switch, see `checkParts`.
 * @throws ConfigurationError listing every problem.
 */
export function resolveBrokerOptions(
  options: BrokerOptions,
  checkMore: (check: OptionChecker) => void = () => undefined,
): ResolvedBrokerOptions {
  const check = new OptionChecker('EmbeddedBroker');
  if (check.object('options', options)) {
    check.unknownOptions(options, [...OPTION_NAMES, 'clock', 'store', 'transactions', 'pendingAcks']);
    checkMore(check);
    for (const name of OPTION_NAMES) {
      if (SWITCHES.includes(name)) check.boolean(name, options[name]);
      else if (DURATIONS.includes(name)) check.durationMs(name, options[name]);
      else check.positiveInteger(name, options[name]);
    }
    const entries = Number(options['maxLedgerEntries'] ?? 0);
    if (entries > MAX_LEDGER_ENTRIES)
      check.problem(`"maxLedgerEntries" must be at most ${MAX_LEDGER_ENTRIES}, got ${entries}`);
  }
  check.throwIfAny();
  const given = OPTION_NAMES.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]);
  return { ...DEFAULT_BROKER_OPTIONS, ...(Object.fromEntries(given) as Partial<ResolvedBrokerOptions>) };
}
