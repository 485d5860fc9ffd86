// The seam to a broker. Everything the runtime asks of one is here; the comments are the contract that
// the conformance suite checks. All methods may be called from many handlers at once.
import type { EncodedMessage, ReceivedMessage } from '../core/message.js';
import type { MessageId } from '../core/message-id.js';
import type { SubscriptionSpec } from '../core/subscription-spec.js';
import type { Clock } from './clock.js';
import type { InTransaction, Transaction, TransactionOptions } from './transaction.js';

/** What a transport can do beyond the minimum. The runtime checks handlers against it at start: no silent downgrade. */
export type Capability =
  /** `acknowledge` resolves when the broker has it, not when the client has queued it. */
  | 'ack-receipts'
  | 'cumulative-ack'
  /** `redeliveryCount` is the broker's own. */
  | 'redelivery-count'
  /** The broker keeps a message until `deliverAtMs` (Shared and Key_Shared). */
  | 'delayed-delivery'
  /** `pause()` stops the granting of permits. */
  | 'flow-pause'
  | 'pattern-subscriptions'
  /** `newTransaction`; whether the broker has them is known once one was begun. */
  | 'transactions'
  /** Key_Shared keeps the order of a key whose message failed, where the broker of the connection does (PIP-493). */
  | 'ordered-negative-ack';

export interface Transport {
  /** For logs and errors, e.g. `embedded`. */
  readonly name: string;
  readonly capabilities: ReadonlySet<Capability>;
  /** The clock it counts by, where it has one of its own: the runtime must count by the same. */
  readonly clock?: Clock | undefined;
  /** What the broker takes for one message, payload and properties together, in bytes. */
  readonly maxMessageBytes: number;
  /**
   * Opens a consumer. Resolves once the broker has confirmed it: what is published afterwards is kept for it.
   * @throws TransportError CONSUMER_BUSY (retriable) when the type or an exclusive consumer forbids it; NOT_SUPPORTED;
   *   TOPIC_NAME_INVALID; CONNECTION_LOST; ALREADY_CLOSED.
   */
  subscribe(spec: SubscriptionSpec): Promise<Subscription>;
  /** Opens a producer on a full topic name; a partitioned topic is routed by key. @throws TransportError as above. */
  publisher(topic: string, options?: PublisherRequest): Promise<Publisher>;
  /**
   * Only with 'transactions'. Begins one, for `publish` and `acknowledge` of this transport.
   * @throws ConfigurationError; TransportError TRANSACTIONS_UNAVAILABLE where the broker has none; CALL_TIMED_OUT or
   *   BROKER_ERROR (retriable), also when the broker has too many; ALREADY_CLOSED.
   */
  newTransaction?(options?: TransactionOptions): Promise<Transaction>;
  /** Closes what is still open, subscriptions included. Calling it twice is allowed. */
  close(): Promise<void>;
}

export interface PublisherRequest {
  /**
   * A subscription that the topic has from its earliest message on before the publisher is confirmed, so that nothing
   * published is dropped for want of one (D-19). One of that name that is there already stays as it is. A client that
   * cannot name one opens and closes a consumer. @default none
   */
  readonly initialSubscription?: string | undefined;
  /**
   * Unique on the topic among producers that are connected: another one of that name is refused with PRODUCER_BUSY
   * (S-45). A broker that deduplicates drops what comes from this name with a sequence id at or below the last one it
   * has of it (S-44), also after it was closed and opened anew. @default the broker makes one
   */
  readonly producerName?: string | undefined;
}

/** One subscription on a broker. */
export interface Subscription {
  /** The next message; undefined once `close()` was called or `signal` aborted. One call at a time. */
  receive(signal: AbortSignal): Promise<ReceivedMessage | undefined>;
  /**
   * Resolves when the broker has it where `capabilities` has 'ack-receipts', else when it is handed to the client. An id
   * with a `batchIndex` acknowledges that message alone; the entry goes when all of its messages are. Acknowledging again
   * is no error.
   * @param options `{ transaction }`, with 'transactions': resolves when they are in it, all or none. They come no more while
   *   it is open, are acknowledged once it is committed, and come again when it is aborted. The same message in two of them
   *   is a conflict (T-10); one that is acknowledged outside meanwhile stays so whatever becomes of it (T-14).
   * @throws TransportError CONNECTION_LOST (retriable), ALREADY_CLOSED; in a transaction also TRANSACTION_CONFLICT and
   *   TRANSACTION_ENDED, and there `sent` is false where nothing of the call has reached the broker, and nothing will: the
   *   messages are here still, and no abort brings them.
   */
  acknowledge(ids: readonly MessageId[], options?: InTransaction): Promise<void>;
  /** Exclusive and Failover only: everything up to and including `id`. @throws TransportError NOT_SUPPORTED elsewhere. */
  acknowledgeCumulative(id: MessageId): Promise<void>;
  /**
   * Asks for redelivery without further delay, counted by the broker. Whole entries: a batch index is ignored. Ids that
   * are not pending at this consumer are ignored (S-22). On Exclusive and Failover the WHOLE subscription is sent again.
   * Resolves when the request was handed to the broker. @throws TransportError CONNECTION_LOST, ALREADY_CLOSED.
   */
  redeliver(ids: readonly MessageId[]): Promise<void>;
  /**
   * Key_Shared with 'ordered-negative-ack' (PIP-493, K-21). Of `nacked` the broker learns that they failed: they stay
   * pending here, and nothing later of their keys is sent to anybody until they are acknowledged; `redeliver` asks for
   * them when their delay is over. `returned` go back uncounted, to be sent again in their place. No entry is in both.
   * What was acknowledged before reaches the broker first (K-42). Ids that are not pending here are ignored, and over a
   * connection that is gone nothing is asked: everything comes again anyway. No answer, no error but ALREADY_CLOSED.
   */
  negativeAcknowledgeOrdered?(nacked: readonly MessageId[], returned: readonly MessageId[]): void;
  /** Stops and restarts the granting of permits; what was granted still arrives. */
  pause(): void;
  resume(): void;
  /** Messages of the subscription that are not acknowledged, everybody's; undefined where the transport cannot know at once. */
  backlog?(): number | undefined;
  /** Whether all topics are terminated and everything on them is acknowledged (G-13). Left out where it is not known. */
  hasReachedEnd?(): boolean;
  /** All consumers' unsettled messages are sent again from there (S-28). */
  seek(to: MessageId | Date | 'earliest' | 'latest'): Promise<void>;
  /**
   * `report` is called with the current state of each topic (partitions one by one) at once and on each change. One
   * reporter per subscription.
   */
  onState(report: (state: SubscriptionState) => void): void;
  /** Gives unsettled deliveries back, uncounted; never unsubscribes. Calling it twice is allowed. */
  close(): Promise<void>;
}

export interface SubscriptionState {
  /** Full name, with its partition: each may be on a connection of its own. */
  readonly topic: string;
  /** Grows with each reconnect of the topic; the same number is on each message that came over it. */
  readonly connection: number;
  /**
   * `active` and `standby`: Failover only. `suspended`: connected, but nothing is taken, because `orderedNegativeAck` is
   * 'required' and this broker cannot (K-50).
   */
  readonly state: 'connected' | 'lost' | 'active' | 'standby' | 'suspended';
  /** Whether the broker of this connection keeps the order of a key whose message failed. @default false */
  readonly orderedNegativeAck?: boolean | undefined;
}

/** One producer on a topic. */
export interface Publisher {
  /** Full name. */
  readonly topic: string;
  /** Takes a sequence id for one message; repeating a publish whose result is unknown uses the same one. */
  nextSequenceId(): number;
  /**
   * Resolves with the receipt: the message is stored as it was at the call, whatever the caller does to its bytes since. Messages with one key are stored in the order of these calls.
   * @param options `{ transaction }`, with 'transactions': the message is shown once that is committed. Then sequence ids are
   *   not for repeating: a broker that deduplicates does not look whether what it had before was aborted.
   * @throws TransportError; `retriable: false` means refused for good: MESSAGE_TOO_LARGE, TOPIC_TERMINATED, NOT_SUPPORTED;
   *   in a transaction also TRANSACTION_ENDED.
   */
  publish(message: EncodedMessage, sequenceId: number, options?: InTransaction): Promise<MessageId>;
  close(): Promise<void>;
}
