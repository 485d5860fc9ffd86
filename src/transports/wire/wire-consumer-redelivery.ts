// When the messages of one consumer come again: its negative acknowledgements and its ack timeouts, and what ends
// either of them. One entry is asked back once, whichever of the two is due first.
import type { MessageId } from '../../core/message-id.js';
import type { ReceivedMessage } from '../../core/message.js';
import type { Subscription, SubscriptionState } from '../../ports/transport.js';
import { AckTimeoutTracker } from '../../redelivery/ack-timeout-tracker.js';
import { NegativeAckTracker } from '../../redelivery/negative-ack-tracker.js';
import type { NackedMessage } from '../../redelivery/negative-ack-tracker.js';
import type { RedeliveryOptions } from './wire-consumer-options.js';
import type { ResolvedWireOptions } from './wire-options.js';

export interface ConsumerRedeliveryParts {
  readonly subscription: Pick<Subscription, 'redeliver'>;
  /** Whether one entry can be asked back alone: on Shared and Key_Shared (N-31). */
  readonly singly: boolean;
  /** For log lines. */
  readonly subject: string;
  /** Told what was asked back because its delay or its time was over. */
  readonly askedFor?: ((ids: readonly MessageId[]) => void) | undefined;
}

/**
 * What is negatively acknowledged: a received message. Without its redelivery count it waits the fixed delay; without
 * its connection it may be of an older one; without its keys nothing is done for the order of its key.
 */
export interface NackedArrival extends NackedMessage, Pick<ReceivedMessage, 'key' | 'orderingKey'> {
  readonly connection?: number | undefined;
}

export class ConsumerRedelivery {
  readonly #parts: ConsumerRedeliveryParts;
  readonly #nacks: NegativeAckTracker;
  readonly #timeouts: AckTimeoutTracker | undefined;
  /** Topics whose messages are with this consumer, and the generation of their connection. */
  readonly #connections = new Map<string, number>();

  constructor(parts: ConsumerRedeliveryParts, options: RedeliveryOptions, client: ResolvedWireOptions) {
    this.#parts = parts;
    const { clock, random, logger } = client;
    const shared = {
      clock,
      random,
      redeliver: (ids: readonly MessageId[]) => this.#redeliver(ids),
      onRequestFailed: (error: Error, { length }: readonly MessageId[]) =>
        logger?.debug(`${parts.subject}: redelivery of ${length} entries is asked for again: ${error.message}`),
      onBackoffFailed: (error: Error) => logger?.error(`${parts.subject}: a backoff failed: ${error.message}`),
    };
    const { negativeAckRedeliveryDelayMs: delayMs, negativeAckBackoff, ackTimeoutMs = 0, ackTimeoutBackoff } = options;
    this.#nacks = new NegativeAckTracker({ ...shared, delayMs, backoff: negativeAckBackoff });
    if (ackTimeoutMs > 0) {
      this.#timeouts = new AckTimeoutTracker({ ...shared, timeoutMs: ackTimeoutMs, backoff: ackTimeoutBackoff });
    }
  }

  /** Whether messages must be told when they are handed on. */
  get hasTimeout(): boolean {
    return this.#timeouts !== undefined;
  }

  /** Whether nothing waits: then nothing needs to be cancelled. */
  get isIdle(): boolean {
    return this.#nacks.size === 0 && (this.#timeouts?.size ?? 0) === 0;
  }

  handedOn(message: ReceivedMessage): void {
    if (this.#isHere(message)) this.#timeouts?.add(message);
  }

  /**
   * A message of an older connection is with the broker again, or came again, and while the topic has no connection the
   * broker sends all of it again: then nothing is to be asked for (N-29, N-32).
   * @returns when it is asked for, epoch milliseconds; undefined where it is not.
   */
  negativeAcknowledge(message: NackedArrival): number | undefined {
    if (!this.#isHere(message)) return undefined;
    this.#timeouts?.remove(message.id);
    return this.#nacks.negativeAcknowledge(message);
  }

  /** It will not be settled: its entry comes again, and nobody waits for it. */
  discarded(id: MessageId): void {
    this.#timeouts?.remove(id);
  }

  /** These are acknowledged: neither their delay nor their time limit goes on (N-27). */
  acknowledged(ids: readonly MessageId[]): void {
    for (const id of ids) {
      this.#nacks.acknowledge(id);
      this.#timeouts?.remove(id);
    }
  }

  /** The same for everything up to `id` (N-28). */
  acknowledgedThrough(id: MessageId): void {
    this.#nacks.acknowledgeCumulative(id);
    this.#timeouts?.removeThrough(id);
  }

  /** These were asked back, or went back, as whole entries: their siblings come again with them, and nothing waits for them any more. */
  askedBack(ids: readonly MessageId[]): void {
    if (!this.#parts.singly) return this.#clear();
    this.acknowledged(ids.map((id) => ({ ...id, batchIndex: -1 })));
  }

  /** Without a connection, and on standby, everything unacknowledged is with the broker again, uncounted (N-16, N-29). */
  stateChanged({ topic, connection, state }: SubscriptionState): void {
    if (state !== 'lost' && state !== 'standby') {
      this.#connections.set(topic, connection);
      return;
    }
    this.#connections.delete(topic);
    this.#clear(topic);
  }

  close(): void {
    this.#nacks.close();
    this.#timeouts?.close();
  }

  async #redeliver(ids: readonly MessageId[]): Promise<void> {
    await this.#parts.subscription.redeliver(ids);
    this.askedBack(ids);
    this.#parts.askedFor?.(ids);
  }

  #isHere({ id, connection }: NackedArrival): boolean {
    const { topic } = id;
    if (topic === '') return this.#connections.size > 0; // Taken only where the subscription has one topic.
    const now = this.#connections.get(topic);
    return now !== undefined && (connection === undefined || connection === now);
  }

  #clear(topic?: string): void {
    this.#nacks.clear(topic);
    this.#timeouts?.clear(topic);
  }
}
