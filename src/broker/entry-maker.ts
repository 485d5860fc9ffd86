// What is published becomes an entry: checked, copied so that it keeps no tie to the caller, and within the broker's limits.
import { TransportError, describeValue } from '../core/errors.js';
import type { EncodedMessage } from '../core/message.js';
import type { Clock } from '../ports/clock.js';
import { publishRefused } from './broker-errors.js';
import type { ResolvedBrokerOptions } from './broker-options.js';
import { BytePool } from './byte-pool.js';
import type { EntryOrigin } from './entry.js';
import { Entry } from './entry.js';
import type { StoredMessage } from './stored-message.js';
import { storedMessage } from './stored-message.js';

export class EntryMaker {
  readonly #options: ResolvedBrokerOptions;
  readonly #clock: Clock;
  readonly #pool = new BytePool();

  constructor(options: ResolvedBrokerOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** @throws TransportError PUBLISH_REFUSED. */
  message(message: EncodedMessage): StoredMessage {
    return storedMessage(message, this.#pool);
  }

  /** The messages of a producer batch. @throws TransportError PUBLISH_REFUSED, also for delayed ones (Y-01). */
  batch(messages: readonly EncodedMessage[]): readonly StoredMessage[] {
    if (!isList(messages)) throw publishRefused(`a batch must be a list of messages, got ${describeValue(messages)}`);
    if (messages.length === 0) throw publishRefused('a batch must hold at least one message');
    const stored = messages.map((message) => this.message(message));
    if (stored.some(({ deliverAtMs }) => deliverAtMs !== undefined)) {
      throw publishRefused('a batch holds no delayed messages');
    }
    return stored;
  }

  /** @param topic full name, for errors. @throws TransportError MESSAGE_TOO_LARGE, NOT_ALLOWED. */
  single(message: StoredMessage, topic: string, origin: EntryOrigin): Entry {
    const { maxDeliveryDelayMs } = this.#options;
    const publishTimeMs = this.#clock.now();
    if (maxDeliveryDelayMs > 0 && (message.deliverAtMs ?? 0) - publishTimeMs > maxDeliveryDelayMs) {
      const text = `Exceeds max allowed delivery delay of ${maxDeliveryDelayMs} milliseconds`;
      throw new TransportError('NOT_ALLOWED', `publish to "${topic}": ${text}`, { retriable: false });
    }
    const { bytes } = message;
    this.#checkSize(bytes, topic);
    return new Entry(message, { bytes, publishTimeMs }, origin);
  }

  /** @throws TransportError MESSAGE_TOO_LARGE. */
  batched(messages: readonly StoredMessage[], topic: string, origin: EntryOrigin): Entry {
    const bytes = messages.reduce((sum, message) => sum + message.bytes, 0);
    this.#checkSize(bytes, topic);
    return new Entry(messages, { bytes, publishTimeMs: this.#clock.now() }, origin);
  }

  #checkSize(bytes: number, topic: string): void {
    const { maxMessageBytes } = this.#options;
    if (bytes <= maxMessageBytes) return;
    const text = `a message of ${bytes} bytes is larger than the ${maxMessageBytes} bytes that topic "${topic}" takes`;
    throw new TransportError('MESSAGE_TOO_LARGE', text, { retriable: false });
  }
}

/** Unlike Array.isArray it leaves the type of the items alone. */
function isList(value: unknown): boolean {
  return Array.isArray(value);
}
