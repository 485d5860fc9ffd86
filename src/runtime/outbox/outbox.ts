// An outbox as its user sees it: messages are added in his own database transaction, and a runtime that is given the outbox
// relays them once that is committed. Here they are checked and encoded; the store of the database keeps them.
import { ConfigurationError, PulseworkError, containRejection, describeValue } from '../../core/errors.js';
import { OptionChecker } from '../../core/options.js';
import type { EncodedMessage, OutgoingMessage } from '../../core/message.js';
import { outboxRecord } from '../../core/outbox-record.js';
import type { OutboxRecord } from '../../core/outbox-record.js';
import { PreparedMessage } from '../../core/recorded-outcome.js';
import { fullTopicName } from '../../core/topic-name.js';
import type { Clock } from '../../ports/clock.js';
import type { OutboxStore, RefusedRow } from '../../ports/outbox-store.js';
import { encodeMessageNow } from '../message-encoder.js';
import type { Provenance } from '../message-encoder.js';
import { originOf } from './transaction-origins.js';

/** A message that the broker will never take as it is; those of its topic and key wait behind it. */
export interface RefusedMessage {
  readonly id: number;
  /** As it was named when the message was added. */
  readonly topic: string;
  /** As JSON: a text, or `{ "base64": ... }` for bytes; undefined for a message without a key. */
  readonly key: string | undefined;
  readonly payload: Uint8Array | null;
  readonly reason: string;
  /** Epoch milliseconds. */
  readonly refusedMs: number;
}

/** How many refused messages are listed unless told otherwise. */
const MAX_LISTED = 100;

/** What every outbox has; `add` depends on the database. Made by `postgresOutbox()`, `sqliteOutbox()`, `memoryOutbox()`. */
export abstract class Outbox<Tx = never> {
  /** For the runtime. */
  readonly store: OutboxStore<Tx>;
  readonly #clock: Clock;

  /** @param clock for delays: `deliverAfterMs` counts from the moment when a message is added. */
  constructor(store: OutboxStore<Tx>, clock: Clock) {
    this.store = store;
    this.#clock = clock;
  }

  /**
   * Makes the tables, or brings them up to date. A runtime with this outbox does it at its start; needed before the first
   * `add` where no runtime has done it yet. @throws PulseworkError as the store's: STORE_FORMAT_UNKNOWN, STORE_FAILED, ...
   */
  open(): Promise<void> {
    return this.store.open();
  }

  /**
   * The message checked and encoded, to be added later: for schemas that are asynchronous where `add` is not, and to keep
   * that time out of a transaction. @throws PulseworkError PUBLISH_REFUSED when it can never be published.
   */
  async prepare(message: OutgoingMessage): Promise<OutgoingMessage> {
    checkTopic(message);
    return new PreparedMessage(message.topic.name, await encodeMessageNow(message, this.#clock), message.replyTo);
  }

  /** Messages that wait for a person, the oldest first. @param options `limit`: @default 100 */
  async refused(options: { readonly limit?: number | undefined } = {}): Promise<readonly RefusedMessage[]> {
    const check = new OptionChecker('outbox.refused');
    check.options(options, ['limit']);
    check.positiveInteger('limit', options.limit);
    check.throwIfAny();
    return (await this.store.refused(options.limit ?? MAX_LISTED)).map(refusedMessage);
  }

  /** Publishes a refused message as it is, once more; those behind it follow. False when it is not refused (any more). */
  release(id: number): Promise<boolean> {
    return this.store.release(id);
  }

  /** Deletes a refused message, which is then lost; those behind it go on. False when it is not refused (any more). */
  skip(id: number): Promise<boolean> {
    return this.store.skip(id);
  }

  /** @throws PulseworkError PUBLISH_REFUSED, CONFIGURATION_INVALID without a transaction; what is asynchronous gives a promise. */
  protected recordsOf(tx: Tx, messages: readonly OutgoingMessage[]): (OutboxRecord | Promise<OutboxRecord>)[] {
    if (typeof tx !== 'object' || tx === null)
      throw new ConfigurationError([
        'outbox.add takes your open transaction first, then messages, got ' + describeValue(tx),
      ]);
    const origin = originOf(tx);
    return messages.map((message) => {
      checkTopic(message);
      const { topic, replyTo } = message;
      const recordOf = (encoded: EncodedMessage): OutboxRecord => outboxRecord(topic.name, encoded, replyTo);
      const provenance = origin?.provenanceOf(message) ?? {};
      if (message instanceof PreparedMessage) return recordOf(withProvenance(message.message, provenance));
      const encoded = encodeMessageNow(message, this.#clock, provenance);
      if (!(encoded instanceof Promise)) return recordOf(encoded);
      // Another message may be refused meanwhile: then nobody waits for this one.
      containRejection(encoded);
      return encoded.then(recordOf);
    });
  }
}

/** Of a database that answers later. */
export class AsyncOutbox<Tx> extends Outbox<Tx> {
  /**
   * Adds messages in `tx`, your own transaction: they are published once it is committed, never if it is rolled back. Await it
   * before you commit. Of one topic and key they are published in the order of these calls.
   * @throws PulseworkError PUBLISH_REFUSED when one can never be published: then none was added; what the database throws.
   */
  async add(tx: Tx, ...messages: readonly OutgoingMessage[]): Promise<void> {
    const records = await Promise.all(this.recordsOf(tx, messages).map(async (record) => record));
    if (records.length > 0) await this.store.append(tx, records);
  }
}

/** Of a database in this process: usable inside `database.transaction(() => ...)`, which allows no promises. */
export class SyncOutbox<Tx> extends Outbox<Tx> {
  /**
   * Adds messages in `tx`, your own transaction: they are published once it is committed, never if it is rolled back. Of one
   * topic and key they are published in the order of these calls.
   * @throws PulseworkError PUBLISH_REFUSED when one can never be published, or its schema is asynchronous (then `prepare`
   *   it first): none was added; what the database throws.
   */
  add(tx: Tx, ...messages: readonly OutgoingMessage[]): void {
    const records = this.recordsOf(tx, messages).map((record, index) => {
      if (!(record instanceof Promise)) return record;
      containRejection(record);
      const name = JSON.stringify(messages[index]?.topic.name);
      const rule = `message for topic ${name}: its schema answers later, which a transaction here cannot wait for`;
      throw new PulseworkError('PUBLISH_REFUSED', `${rule}; add what "await outbox.prepare(message)" gives`);
    });
    if (records.length > 0) void this.store.append(tx, records);
  }
}

function withProvenance(message: EncodedMessage, own: Provenance): EncodedMessage {
  const { messageId, correlationId, causationId } = own;
  const { properties } = message;
  return {
    ...message,
    properties: {
      ...properties,
      ...(messageId !== undefined && { 'pulsework-message-id': messageId }),
      ...(correlationId !== undefined && {
        'pulsework-correlation-id': properties['pulsework-correlation-id'] ?? correlationId,
      }),
      ...(causationId !== undefined && { 'pulsework-causation-id': causationId }),
    },
  };
}

/** Before it is in a table, where nobody hears of it. @throws PulseworkError PUBLISH_REFUSED */
function checkTopic({ topic, replyTo = topic.name }: OutgoingMessage): void {
  try {
    fullTopicName(replyTo);
  } catch (error) {
    const rule = `message for topic ${JSON.stringify(replyTo)}: its name is wrong`;
    throw new PulseworkError('PUBLISH_REFUSED', rule, { cause: error });
  }
}

function refusedMessage({ id, topic, orderedBy, payload, reason, refusedMs }: RefusedRow): RefusedMessage {
  return { id, topic, key: orderedBy, payload, reason, refusedMs };
}
