// The words of the conformance suite: what a case is, what a harness must supply, and why a transport may leave a case
// out. Nothing here knows a test runner: a case passes when its promise resolves and fails when it rejects.
import type { AccessMode } from '../../core/access-mode.js';
import type { EncodedMessage, ReceivedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import type { SubscriptionType } from '../../core/subscription-spec.js';
import type { Clock } from '../../ports/clock.js';
import type { Capability, Publisher, Transport } from '../../ports/transport.js';
import type { ConformanceWorld } from './conformance-world.js';

/** A rule with its number in docs/semantics.md, e.g. `A-15: acknowledging again is no error`. */
export type ConformanceRule = `${'N' | 'A' | 'D' | 'K' | 'Y' | 'T' | 'S' | 'G'}-${number}: ${string}`;

/** What a harness may be unable to do, whatever its transport can. */
export type HarnessAbility =
  | 'producer-batches'
  | 'producer-chunks'
  | 'statistics'
  | 'unload'
  | 'terminate'
  | 'grow'
  | 'deduplicate'
  | 'expire'
  | 'delete-subscription'
  | 'delete-topic'
  | 'access-modes'
  | 'restart';

export interface ConformanceCase {
  /** A sentence about behaviour; unique in the suite. */
  readonly title: string;
  /** What it checks, by number; empty where the contract of the port `Transport` alone says it. */
  readonly rules: readonly ConformanceRule[];
  /** Without these the case is left out, with that as the reason. @default none */
  readonly needs?: readonly (Capability | HarnessAbility)[] | undefined;
  /** Where it runs against a broker in real time. On virtual time every case runs. @default 'gate' */
  readonly realTime?: RealTimeLimit | undefined;
  /** Rejects when the transport does not do what the title says. */
  run(world: ConformanceWorld): Promise<void>;
}

/** `gate`: takes at most some seconds. Else where it runs instead, and why. */
export type RealTimeLimit = 'gate' | { readonly only: 'campaign' | 'never'; readonly reason: string };

/** What a case needs of the outside. One harness per case. */
export interface ConformanceHarness {
  /** Another client of the same broker, as another process would have it. The case closes it. */
  newTransport(): Promise<Transport>;
  /** The clock of the transports: virtual or the system's. */
  readonly clock: Clock;
  /** A topic that nobody else uses, by its full name. @param partitions 0 for a topic without partitions. */
  newTopic(partitions: number): Promise<string>;
  /** Lets `ms` milliseconds pass, and everything that can happen in them happen. */
  elapse(ms: number): Promise<void>;
  /** Stores the messages as one entry. Left out where nothing can: see 'producer-batches'. */
  readonly publishBatch?:
    | ((topic: string, messages: readonly EncodedMessage[]) => Promise<readonly MessageId[]>)
    | undefined;
  /**
   * By a producer that cuts it into chunks of at most `maxChunkBytes` of payload. Left out where nothing can: see
   * 'producer-chunks'.
   */
  readonly publishChunked?:
    | ((topic: string, message: EncodedMessage, maxChunkBytes: number) => Promise<MessageId>)
    | undefined;
  /** Of a topic without partitions. Left out where nobody tells: see 'statistics'. */
  readonly statistics?: ((topic: string, subscription: string) => Promise<SubscriptionFigures>) | undefined;
  /** The broker closes the topic with all its partitions, and loads it again. Left out where nobody can: see 'unload'. */
  readonly unload?: ((topic: string) => Promise<void>) | undefined;
  /** The topic takes no further messages. Gives the id of its last one. Left out where nobody can: see 'terminate'. */
  readonly terminate?: ((topic: string) => Promise<MessageId>) | undefined;
  /** Gives a partitioned topic more partitions. Left out where nobody can: see 'grow'. */
  readonly grow?: ((topic: string, partitions: number) => Promise<void>) | undefined;
  /**
   * From then on the topic, which has no partitions, drops what its producers repeat (S-44). It may hold messages of the
   * harness afterwards. Left out where nobody can: see 'deduplicate'.
   */
  readonly deduplicate?: ((topic: string) => Promise<void>) | undefined;
  /**
   * Takes from the subscription what was published longer ago, in whole seconds, as a check of the time to live does (S-29).
   * Left out where nobody can: see 'expire'.
   */
  readonly expire?: ((topic: string, subscription: string, olderThanMs: number) => Promise<void>) | undefined;
  /** False when consumers that are connected forbid it (S-30). Left out where nobody can: see 'delete-subscription'. */
  readonly deleteSubscription?: ((topic: string, subscription: string) => Promise<boolean>) | undefined;
  /** Whoever is connected to it. Left out where nobody can: see 'delete-topic'. */
  readonly deleteTopic?: ((topic: string) => Promise<void>) | undefined;
  /**
   * A publisher on `transport`, one of `newTransport`, that wants the topic as `mode` says. Left out where it has no such
   * option: see 'access-modes'.
   */
  readonly publisherAs?: ((transport: Transport, topic: string, mode: AccessMode) => Promise<Publisher>) | undefined;
  /** The broker stops in order and comes back with what it has stored. Left out where nobody can: see 'restart'. */
  readonly restart?: (() => Promise<void>) | undefined;
  /** All that the dead letter topic of this topic and subscription holds, from the first on. */
  readDeadLetters(topic: string, subscription: string): Promise<readonly ReceivedMessage[]>;
}

/** What a broker tells about a subscription. */
export interface SubscriptionFigures {
  /** Entries that are not acknowledged; a producer batch is one. */
  readonly backlog: number;
  /** Messages that consumers hold unacknowledged. */
  readonly unacknowledged: number;
  /** Messages that it may still send, by consumer. Below zero after a batch (S-11). */
  readonly permits: Readonly<Record<string, number>>;
}

/** The same cases for each type of subscription. */
export function forTypes<T extends SubscriptionType>(
  types: readonly T[],
  ...cases: readonly ((type: T) => ConformanceCase)[]
): readonly ConformanceCase[] {
  return types.flatMap((type) => cases.map((caseFor) => caseFor(type)));
}

/** What of a harness an ability is. */
const MEMBER_OF = {
  'producer-batches': 'publishBatch',
  'producer-chunks': 'publishChunked',
  statistics: 'statistics',
  unload: 'unload',
  terminate: 'terminate',
  grow: 'grow',
  deduplicate: 'deduplicate',
  expire: 'expire',
  'delete-subscription': 'deleteSubscription',
  'delete-topic': 'deleteTopic',
  'access-modes': 'publisherAs',
  restart: 'restart',
} as const satisfies Readonly<Record<HarnessAbility, keyof ConformanceHarness>>;

/** What a harness may leave out. */
export type OptionalMember = (typeof MEMBER_OF)[HarnessAbility];

/** Why a case cannot run with this harness and a transport of these capabilities; undefined when it can. */
export function missingFor(
  { needs = [] }: ConformanceCase,
  capabilities: ReadonlySet<Capability>,
  harness: Pick<ConformanceHarness, OptionalMember>,
): string | undefined {
  const isAbility = (need: Capability | HarnessAbility): need is HarnessAbility => Object.hasOwn(MEMBER_OF, need);
  const missing = needs.filter((need) =>
    isAbility(need) ? harness[MEMBER_OF[need]] === undefined : !capabilities.has(need),
  );
  return missing.length === 0 ? undefined : `the transport or its harness lacks ${missing.join(', ')}`;
}
