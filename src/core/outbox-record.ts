// A message in the form in which it waits in a table of the user's database: its bytes as they are, the rest as text that
// any database keeps unchanged. Pure.
import { describeValue, PulseworkError } from './errors.js';
import { murmur3 } from './key-hash.js';
import type { EncodedMessage } from './message.js';
import type { RecordedMessage } from './recorded-outcome.js';
import { PreparedMessage, preparedMessage, recordedMessage } from './recorded-outcome.js';

export interface OutboxRecord {
  /** As it was named in code, short or full: the runtime that relays it completes the name, unless `headers` says that it is whole. */
  readonly topic: string;
  /** Of messages of one topic with the same text the order is kept; undefined for a message without key and ordering key. */
  readonly orderedBy: string | undefined;
  /** null is Pulsar's null value. */
  readonly payload: Uint8Array | null;
  /** Everything else of the message, as JSON. */
  readonly headers: string;
}

/**
 * How many messages of one topic are on their way at once. Each lane has a producer of its own and sends one message after
 * the other, so that a message that failed never lies behind a later one: a broker that deduplicates would drop it.
 * Never to be changed: a message that was sent by one producer would be repeated by another, which its broker knows nothing of.
 */
export const OUTBOX_LANES = 16;

/** As many waiting rows are counted, once a second: what is more is an alarm all the same, and costs no more. */
export const MAX_WAITING_COUNTED = 100_000;

type Headers = Omit<RecordedMessage, 'topic' | 'payload'> & {
  readonly version: unknown;
  readonly hasFullName?: boolean | undefined;
};

/** Version of `headers`: changes when a reader of this one could not read it. */
const VERSION = 1;

/** @param replyTo full name of where it goes, as who waits for it has said */
export function outboxRecord(topic: string, message: EncodedMessage, replyTo?: string): OutboxRecord {
  const {
    topic: _topic,
    payload: _payload,
    ...rest
  } = recordedMessage(new PreparedMessage(topic, { ...message, payload: null }));
  const { key, orderingKey } = rest;
  const order = key ?? (orderingKey === undefined ? undefined : { ordering: orderingKey });
  return {
    topic: replyTo ?? topic,
    // JSON keeps a text and bytes apart, and writes what databases do not take.
    orderedBy: order === undefined ? undefined : JSON.stringify(order),
    payload: message.payload,
    headers: JSON.stringify({ version: VERSION, ...(replyTo !== undefined && { hasFullName: true }), ...rest }),
  };
}

export interface OutboxMessage {
  readonly message: EncodedMessage;
  /** Whether `topic` of the row is a full name, of which no runtime makes another one. */
  readonly hasFullName: boolean;
}

/** @throws PulseworkError STORE_FORMAT_UNKNOWN when a newer version wrote it, or it is no record at all. */
export function messageOfOutbox({
  topic,
  payload,
  headers,
}: Pick<OutboxRecord, 'topic' | 'payload' | 'headers'>): OutboxMessage {
  const { version, hasFullName, ...rest } = JSON.parse(headers) as Headers;
  if (version !== VERSION)
    throw new PulseworkError(
      'STORE_FORMAT_UNKNOWN',
      `a message in the outbox has version ${describeValue(version)}, which this program does not know`,
    );
  const message = { ...preparedMessage({ ...rest, topic, payload: null }).message, payload };
  return { message, hasFullName: hasFullName === true };
}

/** The lane of a row: the same for all messages of a key, and for each repeat of one without. */
export function outboxLane({ id, orderedBy }: { readonly id: number; readonly orderedBy: string | undefined }): number {
  return orderedBy === undefined ? id % OUTBOX_LANES : murmur3(orderedBy) % OUTBOX_LANES;
}

/**
 * The first of `count` numbers for rows that are to be sent now. Larger than all before, and it follows the clock
 * (microseconds): a database that was restored from a backup must not give numbers again that the broker has seen, or
 * their messages would be dropped as repeats.
 */
export function nextOutboxNumber(last: number, nowMs: number): number {
  return Math.max(last + 1, Math.floor(nowMs) * 1_000);
}
