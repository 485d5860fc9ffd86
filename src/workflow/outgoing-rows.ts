// What workflows want sent, as rows that the relay takes: whatever a broker would never take is refused here, where the method, or
// whoever waits, still hears of it.
import { jsonCodec } from '../core/codec.js';
import { PulseworkError, toError } from '../core/errors.js';
import { messageBytes } from '../core/message-bytes.js';
import type { EncodedMessage, OutgoingMessage } from '../core/message.js';
import { PreparedMessage, recordedMessage } from '../core/recorded-outcome.js';
import type { MessageProperties } from '../core/properties.js';
import { cutToBytes } from '../core/text.js';
import type { JournalError } from '../core/workflow-journal.js';
import { journalError } from '../core/workflow-journal.js';
import type { Clock } from '../ports/clock.js';
import type { OutgoingRow, WorkflowRecord } from '../ports/workflow-store.js';
import { encodeMessage } from '../runtime/message-encoder.js';
import type { PublishWork } from './command.js';
import type { ChildEnd, EventMessage } from './event-message.js';
import { eventTopicName } from './event-message.js';
import { messageIdOf } from './workflow-ids.js';

/** Of a message that is too large whole. */
const MAX_ERROR_BYTES = 4 * 1024;

export interface OutgoingRowsOptions {
  readonly clock: Clock;
  /** Of a topic. Throws for what is none. */
  readonly fullName: (name: string) => string;
  /** What the broker takes for one message: transports know it once they are connected. */
  readonly maxMessageBytes: () => number;
}

export class OutgoingRows {
  readonly #options: OutgoingRowsOptions;
  readonly #carried: (properties: MessageProperties) => MessageProperties;

  /** @param carried the properties of a message with what telemetry adds to them */
  constructor(options: OutgoingRowsOptions, carried: (properties: MessageProperties) => MessageProperties) {
    this.#options = options;
    this.#carried = carried;
  }

  /** A message of `flow.publish`, or the work of a step. @throws PulseworkError PUBLISH_REFUSED */
  async message({ topic, payload, options = {} }: PublishWork, messageId: string): Promise<OutgoingRow> {
    const message = await this.#encoded({ topic, payload, options }, messageId);
    return this.#row(this.#fullName(topic.name), message, messageId);
  }

  /** What its schema throws is a refusal too: it must not cost the workflow what it has done before. */
  async #encoded(outgoing: OutgoingMessage, messageId: string): Promise<EncodedMessage> {
    try {
      return await encodeMessage(outgoing, this.#options.clock, { messageId });
    } catch (error) {
      if (error instanceof PulseworkError) throw error;
      const text = `message for topic ${JSON.stringify(outgoing.topic.name)}: its schema threw: ${toError(error).message}`;
      throw new PulseworkError('PUBLISH_REFUSED', text, { cause: error });
    }
  }

  /** The full name of the topic of events of the workflow `name`. @throws PulseworkError PUBLISH_REFUSED */
  replyTo(name: string): string {
    return this.#fullName(eventTopicName(name));
  }

  /** An event for the workflow `name`. @throws PulseworkError PUBLISH_REFUSED */
  event(name: string, event: EventMessage, messageId: string): OutgoingRow {
    const properties = { 'pulsework-message-id': messageId };
    const message = { payload: jsonCodec.encode(event), key: event.id, properties };
    return this.#row(this.replyTo(name), message, messageId);
  }

  /** For the parent, if there is one: how its child ended. A result that is too large is a failure for it, a failure is cut. */
  forParent({ name, id, run, parent }: WorkflowRecord, end: Pick<ChildEnd, 'value' | 'error'>): OutgoingRow[] {
    if (parent === undefined) return [];
    const messageId = messageIdOf({ record: { name, id, run } }, 'ended');
    const row = (payload: ChildEnd): OutgoingRow =>
      this.event(parent.name, { v: 1, id: parent.id, kind: 'child-ended', eventId: messageId, payload }, messageId);
    const { run: parentRun, at } = parent;
    try {
      return [row({ run: parentRun, at, ...end })];
    } catch (error) {
      return [row({ run: parentRun, at, error: shortened(end.error) ?? journalError(toError(error)) })];
    }
  }

  #row(topic: string, message: EncodedMessage, messageId: string): OutgoingRow {
    const maxBytes = this.#options.maxMessageBytes();
    const row = (sent: EncodedMessage) => ({ messageId, message: recordedMessage(new PreparedMessage(topic, sent)) });
    const observed = { ...message, properties: this.#carried(message.properties) };
    if (messageBytes(observed) <= maxBytes) return row(observed);
    // Nothing is refused for what is only observed.
    const bytes = messageBytes(message);
    if (bytes <= maxBytes) return row(message);
    const rule = `a message of ${bytes} bytes, with its envelope, is larger than the ${maxBytes} bytes that the broker takes`;
    throw new PulseworkError('PUBLISH_REFUSED', `${rule}: topic ${JSON.stringify(topic)}`);
  }

  /** A topic that is none can never be published to: the same error as for a payload that does not fit. */
  #fullName(name: string): string {
    try {
      return this.#options.fullName(name);
    } catch (error) {
      const text = `topic ${JSON.stringify(name)} cannot be published to`;
      throw new PulseworkError('PUBLISH_REFUSED', text, { cause: error });
    }
  }
}

function shortened(error: JournalError | undefined): JournalError | undefined {
  return error && { ...error, message: cutToBytes(error.message, MAX_ERROR_BYTES), stack: undefined };
}
