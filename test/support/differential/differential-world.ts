// What a differential program needs of a broker, the embedded one or a real one, beside the Transport port.
import type { EncodedMessage, MessageId, Transport } from 'pulsework';

export interface ConsumerFigures {
  readonly name: string;
  readonly unacked: number;
}

export interface SubscriptionFigures {
  /** Entries, of which a batch is one. */
  readonly backlog: number;
  /** Messages. */
  readonly unacked: number;
  readonly consumers: readonly ConsumerFigures[];
  /** Whether the topic keeps no entry at all; undefined where the broker does not say. */
  readonly isEmptied?: boolean | undefined;
}

export interface DifferentialWorld {
  /** Opens all consumers of a program. */
  readonly transport: Transport;
  publish(message: EncodedMessage): Promise<MessageId>;
  /** All of them as one entry. */
  publishBatch(messages: readonly EncodedMessage[]): Promise<readonly MessageId[]>;
  unload(): Promise<void>;
  /** Resolves when what everybody has passed is removed. */
  trim(): Promise<void>;
  /** By name of the subscription. */
  figures(): Promise<ReadonlyMap<string, SubscriptionFigures>>;
  /** Between two things that must not happen at the same moment. */
  pause(ms: number): Promise<void>;
  /**
   * Waits until everything that follows from what was done has happened: until `isThere`, where the world cannot know by
   * itself, or as long as it is believed that it may still come.
   */
  settle(isThere: () => boolean | Promise<boolean>): Promise<void>;
  /** What `promise` gives, or undefined where nothing will come of it: `isExpected` says whether something must. */
  comes<T>(promise: Promise<T>, isExpected: boolean): Promise<T | undefined>;
  close(): Promise<void>;
}
