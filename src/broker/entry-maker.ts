// What is published becomes an entry: checked, copied so that it keeps no tie to the caller, and within the broker's limits.
import { TransportError, describeValue } from '../core/errors.js';
import { messageProblem, publishProblem } from '../core/message-checks.js';
import type { EncodedMessage } from '../core/message.js';
import type { Clock } from '../ports/clock.js';
import { publishRefused } from './broker-errors.js';
import type { ResolvedBrokerOptions } from './broker-options.js';
import { BytePool } from './byte-pool.js';
import type { ChunkOrigin, EntryOrigin } from './entry.js';
import { ChunkEntry, Entry, TransactionEntry } from './entry.js';
import { StoredMessage } from './stored-message.js';

export class EntryMaker {
  readonly #options: ResolvedBrokerOptions;
  readonly #clock: Clock;
  readonly #pool = new BytePool();

  constructor(options: ResolvedBrokerOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** @throws ConfigurationError with all that is wrong with it. */
  message(message: EncodedMessage): StoredMessage {
    const wrong = messageProblem(message);
    if (wrong !== undefined) throw wrong;
    return new StoredMessage(message, this.#pool);
  }

  /** The same, of a producer. What a call before has made is taken as it is. */
  numberedMessage(message: EncodedMessage, sequenceId: number): StoredMessage {
    if (message instanceof StoredMessage) return message;
    const wrong = publishProblem(message, sequenceId);
    if (wrong !== undefined) throw wrong;
    return new StoredMessage(message, this.#pool);
  }

  /** The messages of a producer batch. @throws ConfigurationError; TransportError PUBLISH_REFUSED: none, or delayed ones (Y-01). */
  batch(messages: readonly EncodedMessage[]): readonly StoredMessage[] {
    if (!isList(messages)) throw publishRefused(`a batch must be a list of messages, got ${describeValue(messages)}`);
    if (messages.length === 0) throw publishRefused('a batch must hold at least one message');
    const stored = messages.map((message) => this.message(message));
    if (stored.some(({ deliverAtMs }) => deliverAtMs !== undefined)) {
      throw publishRefused('a batch holds no delayed messages');
    }
    return stored;
  }

  /**
   * @param topic full name, for errors. @param chunk the message is this part of a larger one.
   * @throws TransportError MESSAGE_TOO_LARGE, NOT_ALLOWED.
   */
  single(message: StoredMessage, topic: string, origin: EntryOrigin, chunk?: ChunkOrigin): Entry {
    const { maxDeliveryDelayMs } = this.#options;
    const publishTimeMs = this.#clock.now();
    if (maxDeliveryDelayMs > 0 && (message.deliverAtMs ?? 0) - publishTimeMs > maxDeliveryDelayMs) {
      const text = `Exceeds max allowed delivery delay of ${maxDeliveryDelayMs} milliseconds`;
      throw new TransportError('NOT_ALLOWED', `publish to "${topic}": ${text}`, { retriable: false });
    }
    const { bytes } = message;
    this.#checkSize(bytes, topic);
    const facts = { bytes, publishTimeMs };
    if (isInTransaction(origin)) return new TransactionEntry(message, facts, origin, chunk);
    return chunk === undefined ? new Entry(message, facts, origin) : new ChunkEntry(message, facts, origin, chunk);
  }

  /** @throws TransportError MESSAGE_TOO_LARGE. */
  batched(messages: readonly StoredMessage[], topic: string, origin: EntryOrigin): Entry {
    const bytes = messages.reduce((sum, message) => sum + message.bytes, 0);
    this.#checkSize(bytes, topic);
    const facts = { bytes, publishTimeMs: this.#clock.now() };
    return isInTransaction(origin) ? new TransactionEntry(messages, facts, origin) : new Entry(messages, facts, origin);
  }

  #checkSize(bytes: number, topic: string): void {
    const { maxMessageBytes } = this.#options;
    if (bytes <= maxMessageBytes) return;
    const text = `a message of ${bytes} bytes is larger than the ${maxMessageBytes} bytes that topic "${topic}" takes`;
    throw new TransportError('MESSAGE_TOO_LARGE', text, { retriable: false });
  }
}

function isInTransaction(origin: EntryOrigin): origin is EntryOrigin & { readonly transaction: string } {
  return origin.transaction !== undefined;
}

/** Unlike Array.isArray it leaves the type of the items alone. */
function isList(value: unknown): boolean {
  return Array.isArray(value);
}
