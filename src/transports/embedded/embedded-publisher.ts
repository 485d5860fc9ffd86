// A publisher on the embedded broker. The receipt comes when the broker's store has the message.
import { PulseworkError, TransportError, describeValue } from '../../core/errors.js';
import type { EncodedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import type { Publisher } from '../../ports/transport.js';
import type { EmbeddedBroker } from '../../broker/embedded-broker.js';

export class EmbeddedPublisher implements Publisher {
  readonly topic: string;
  readonly #broker: EmbeddedBroker;
  readonly #producerName: string;
  readonly #forget: () => void;
  #lastSequenceId = -1;
  #closed = false;

  /** @param topic full name. @param forget is called once at close. */
  constructor(broker: EmbeddedBroker, topic: string, forget: () => void) {
    this.topic = topic;
    this.#broker = broker;
    this.#producerName = broker.newProducerName();
    this.#forget = forget;
  }

  nextSequenceId(): number {
    this.#lastSequenceId += 1;
    return this.#lastSequenceId;
  }

  async publish(message: EncodedMessage, sequenceId: number): Promise<MessageId> {
    if (this.#closed) {
      throw new TransportError('ALREADY_CLOSED', `publisher of "${this.topic}" is closed`, { retriable: false });
    }
    if (!Number.isSafeInteger(sequenceId) || sequenceId < 0) {
      const rule = `sequence id must be a whole number of 0 or more, got ${describeValue(sequenceId)}`;
      throw new PulseworkError('CONFIGURATION_INVALID', rule);
    }
    return this.#broker.publish(this.topic, message, { producerName: this.#producerName, sequenceId });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#forget();
  }
}
