// A message as it is published (OutgoingMessage by a user, EncodedMessage for a broker) and as it arrives.
import type { MessageId } from './message-id.js';
import type { MessageProperties } from './properties.js';
import type { Topic } from './topic.js';

/** A key decides order and partition; bytes where the producer wrote bytes. */
export type MessageKey = string | Uint8Array;

export interface MessageOptions {
  /** Same key: same partition, and one consumer at a time on Key_Shared. @default none */
  readonly key?: MessageKey | undefined;
  /** Overrides the key for order on Key_Shared, not for the partition. @default none */
  readonly orderingKey?: Uint8Array | undefined;
  readonly properties?: Readonly<Record<string, string>> | undefined;
  /** When what the message tells of happened. @default none */
  readonly eventTime?: Date | undefined;
  /** Not delivered before; honoured by brokers on Shared and Key_Shared only (Y-02). @default at once */
  readonly deliverAt?: Date | undefined;
  /** The same, from the moment of publishing, in milliseconds. @default at once */
  readonly deliverAfterMs?: number | undefined;
  /** Carried through every message that follows. @default the correlation id of the handled delivery, else none */
  readonly correlationId?: string | undefined;
}

/** What a user wants published: made by `topic(...).message(payload, options)`. */
export interface OutgoingMessage {
  readonly topic: Topic<never>;
  readonly payload: unknown;
  readonly options: MessageOptions;
  /**
   * Full name of where it goes, as who waits for it has said: the `topics` function of a runtime is not asked. Where `publishes` lists
   * `topic`, this may be the topic of that name in any namespace, else it must be listed itself.
   */
  readonly replyTo?: string | undefined;
}

/** A message ready for a broker. */
export interface EncodedMessage {
  /** `null` is Pulsar's null value, which differs from an empty payload. */
  readonly payload: Uint8Array | null;
  readonly key?: MessageKey | undefined;
  readonly orderingKey?: Uint8Array | undefined;
  readonly properties: MessageProperties;
  readonly eventTimeMs?: number | undefined;
  readonly deliverAtMs?: number | undefined;
}

/** One arrival, before it is decoded. */
export interface ReceivedMessage extends EncodedMessage {
  readonly id: MessageId;
  /** When the broker or its producer took the message, epoch milliseconds. */
  readonly publishTimeMs: number;
  /** The broker's count: redelivery requests it saw for the entry. 0 on the first delivery. */
  readonly redeliveryCount: number;
  readonly producerName?: string | undefined;
  /**
   * Why a part of it could not be read by the client, which must not look like its absence: the message is given up as
   * `undecodable`. @default all of it was read
   */
  readonly unreadable?: string | undefined;
  /** The generation of the connection it came over: it grows with each reconnect of the subscription. */
  readonly connection: number;
}
