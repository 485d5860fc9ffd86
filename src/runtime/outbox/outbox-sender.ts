// Publishes the rows of an outbox: one producer per topic and lane, named after the outbox, so that a broker that deduplicates
// knows a repeat whichever process makes it, and no two processes publish in one lane at a time.
import { PulseworkError, TransportError, isClosed, isRefusedForGood, toError } from '../../core/errors.js';
import type { EncodedMessage } from '../../core/message.js';
import type { OutboxMessage } from '../../core/outbox-record.js';
import { messageOfOutbox, outboxLane } from '../../core/outbox-record.js';
import { copyProperties } from '../../core/properties.js';
import { fullTopicName } from '../../core/topic-name.js';
import type { ClaimedRow } from '../../ports/outbox-store.js';
import type { Publisher, Transport } from '../../ports/transport.js';
import { withDeliverAt } from '../delayed-delivery.js';
import type { PluginHost } from '../plugin-host.js';
import type { PortCalls } from '../port-calls.js';
import type { TelemetryHost } from '../telemetry-host.js';

export interface OutboxSenderParts {
  readonly transport: Transport;
  readonly calls: PortCalls;
  readonly plugins: Pick<PluginHost, 'wrapPublish'>;
  readonly telemetry: Pick<TelemetryHost, 'startPublish' | 'published' | 'failed'>;
  readonly fullName: (name: string) => string;
}

/** The broker will never take this row's message as it is. */
export class RowRefused extends Error {
  override readonly name = 'RowRefused';
}

/** What a topic says of itself when a producer comes; anything else may be another time. */
const REFUSING_TOPICS: readonly string[] = ['TOPIC_TERMINATED', 'TOPIC_NAME_INVALID'];

export class OutboxSender {
  readonly #parts: OutboxSenderParts;
  readonly #outboxId: string;
  readonly #publishers = new Map<string, Promise<Publisher>>();

  constructor(outboxId: string, parts: OutboxSenderParts) {
    this.#outboxId = outboxId;
    this.#parts = parts;
  }

  /** Resolves when the broker has it. @throws RowRefused when it never will; else what went wrong in passing. */
  async send(row: ClaimedRow): Promise<void> {
    const { message, hasFullName } = this.#read(row);
    const topic = this.#topicOf(row, hasFullName);
    const publisher = await this.#publisher(topic, outboxLane(row));
    let sending: Promise<void> | undefined;
    const publish = this.#parts.plugins.wrapPublish((request) => {
      sending = this.#publish(publisher, request.message, row.number);
      return sending;
    });
    await publish({ topic, message });
    // A plugin that does not wait for it, or does not pass the message on, must not make it look sent.
    if (sending === undefined) throw new Error('a plugin did not let the message through');
    await sending;
  }

  async close(): Promise<void> {
    const opened = await Promise.allSettled(this.#publishers.values());
    this.#publishers.clear();
    await Promise.allSettled(
      opened.map(async (result) => {
        if (result.status === 'rejected') return;
        await this.#parts.calls.run('closing a publisher', () => result.value.close());
      }),
    );
  }

  async #publish(publisher: Publisher, message: EncodedMessage, number: number): Promise<void> {
    const { telemetry, calls, transport } = this.#parts;
    const { topic } = publisher;
    const observed = telemetry.startPublish({ kind: 'message', topic, message, run: undefined, isRelayed: true });
    const sent = observed === undefined ? message : { ...message, properties: observed.properties };
    try {
      const id = await calls.run(`publishing to ${topic}`, () =>
        publisher.publish(withDeliverAt(sent, transport.capabilities), number),
      );
      telemetry.published(observed, id);
    } catch (error) {
      telemetry.failed(observed?.observer, toError(error));
      if (isClosed(error)) this.#forget(publisher);
      throw isRefusedForGood(error) ? refused(error) : error;
    }
  }

  #topicOf({ topic }: ClaimedRow, hasFullName: boolean): string {
    try {
      return hasFullName ? fullTopicName(topic) : this.#parts.fullName(topic);
    } catch (error) {
      throw refused(error);
    }
  }

  #read(row: ClaimedRow): OutboxMessage {
    try {
      const read = messageOfOutbox(row);
      if (read.message.properties['pulsework-message-id'] !== undefined) return read;
      const properties = copyProperties(read.message.properties);
      properties['pulsework-message-id'] = `outbox/${this.#outboxId}/${row.id}`;
      return { ...read, message: { ...read.message, properties } };
    } catch (error) {
      // Not refused: a newer program, which wrote it, will know how to read it.
      if (error instanceof PulseworkError) throw error;
      throw refused(error);
    }
  }

  #publisher(topic: string, lane: number): Promise<Publisher> {
    const producerName = `outbox-${this.#outboxId}-${lane}`;
    const key = `${topic} ${producerName}`;
    const known = this.#publishers.get(key);
    if (known !== undefined) return known;
    let late: Promise<Publisher> | undefined;
    const opening = this.#parts.calls
      .run(`opening a publisher on ${topic}`, () => (late = this.#parts.transport.publisher(topic, { producerName })))
      .catch((error: unknown) => {
        this.#publishers.delete(key);
        // One that opens after its time limit belongs to nobody.
        late?.then((publisher) => publisher.close()).catch(() => undefined);
        throw saysTopicRefuses(error) ? refused(error) : error;
      });
    this.#publishers.set(key, opening);
    return opening;
  }

  #forget(closed: Publisher): void {
    for (const [key, opening] of this.#publishers)
      void opening.then((publisher) => {
        if (publisher === closed) this.#publishers.delete(key);
      });
  }
}

function saysTopicRefuses(error: unknown): boolean {
  return error instanceof TransportError && REFUSING_TOPICS.includes(error.code);
}

function refused(cause: unknown): RowRefused {
  return new RowRefused(toError(cause).message, { cause });
}
