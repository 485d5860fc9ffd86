// A producer of the stand-in. Its close waits for nothing.
import type { EncodedMessage, MessageId } from 'pulsework';
import type { WirePublisher } from 'pulsework/wire';
import type { OddBehaviours, Violations } from './odd-behaviours.js';
import { failure, failureOf } from './stand-in-errors.js';
import { StandInMessageId } from './stand-in-messages.js';

/** How long the client's own batches wait. */
const BATCH_DELAY_MS = 10;

export interface ProducerSettings {
  readonly batched: boolean;
  readonly maxPending: number;
}

export class ProducerCore {
  readonly #wire: WirePublisher;
  readonly #settings: ProducerSettings;
  readonly #odd: OddBehaviours;
  readonly #rejects = new Set<(error: Error) => void>();
  #closed = false;
  #lastSequenceId = -1;

  constructor(wire: WirePublisher, settings: ProducerSettings, odd: OddBehaviours) {
    this.#wire = wire;
    this.#settings = settings;
    this.#odd = odd;
  }

  get closed(): boolean {
    return this.#closed;
  }

  async send(message: EncodedMessage, sequenceId: number | undefined): Promise<StandInMessageId> {
    const prefix = 'Failed to send message';
    if (this.#closed) throw failure(prefix, 'AlreadyClosed');
    if (this.#rejects.size >= this.#settings.maxPending) throw failure(prefix, 'ProducerQueueIsFull');
    this.#lastSequenceId = sequenceId ?? this.#lastSequenceId + 1;
    const sequence = this.#lastSequenceId;
    let reject: (error: Error) => void = () => undefined;
    const dropped = new Promise<never>((_, given) => (reject = given));
    dropped.catch(() => undefined);
    this.#rejects.add(reject);
    try {
      const stored: Promise<MessageId> = this.#settings.batched
        ? this.#later(message, sequence)
        : this.#wire.publish(message, sequence);
      return new StandInMessageId(await Promise.race([stored, dropped]), false, this.#odd);
    } catch (error) {
      throw failureOf(prefix, error, this.#odd);
    } finally {
      this.#rejects.delete(reject);
    }
  }

  async flush(): Promise<null> {
    if (this.#closed) throw failure('Failed to flush producer', 'AlreadyClosed');
    return null;
  }

  async close(): Promise<null> {
    if (this.#closed) throw failure('Failed to close producer', 'AlreadyClosed');
    this.#closed = true;
    const error = failure('Failed to send message', 'AlreadyClosed');
    if (this.#odd.droppingClose) for (const reject of this.#rejects) reject(error);
    await this.#wire.close();
    return null;
  }

  /** What waits in a batch when the producer closes is never sent. */
  async #later(message: EncodedMessage, sequence: number): Promise<MessageId> {
    await new Promise((resolve) => setTimeout(resolve, BATCH_DELAY_MS));
    if (this.#closed) throw failure('Failed to send message', 'AlreadyClosed');
    return this.#wire.publish(message, sequence);
  }
}

/** What a program holds. */
export class StandInProducer {
  readonly #core: ProducerCore;
  readonly #violations: Violations;

  constructor(core: ProducerCore, violations: Violations) {
    this.#core = core;
    this.#violations = violations;
  }

  send(message: Readonly<Record<string, unknown>>): Promise<StandInMessageId> {
    const { data, sequenceId, partitionKey, orderingKey, eventTimestamp, deliverAt } = message;
    if (typeof sequenceId === 'number' && sequenceId < 0) this.#violations.abort('a negative sequence id');
    const encoded: EncodedMessage = {
      // Anything else is published as no bytes at all.
      payload: data instanceof Uint8Array ? Uint8Array.from(data) : new Uint8Array(),
      properties: propertiesOf(message['properties']),
      key: typeof partitionKey === 'string' ? untilNul(partitionKey) : undefined,
      orderingKey: typeof orderingKey === 'string' ? Buffer.from(untilNul(orderingKey)) : undefined,
      eventTimeMs: typeof eventTimestamp === 'number' && eventTimestamp >= 0 ? eventTimestamp : undefined,
      deliverAtMs: typeof deliverAt === 'number' ? deliverAt : undefined,
    };
    return this.#core.send(encoded, typeof sequenceId === 'number' ? sequenceId : undefined);
  }

  flush(): Promise<null> {
    return this.#core.flush();
  }

  close(): Promise<null> {
    return this.#core.close();
  }
}

/** Inherited ones too, values as texts, cut at a NUL. */
function propertiesOf(given: unknown): Record<string, string> {
  const properties = Object.create(null) as Record<string, string>;
  if (typeof given !== 'object' || given === null) return properties;
  for (const name in given) properties[untilNul(name)] = untilNul(String((given as Record<string, unknown>)[name]));
  return properties;
}

function untilNul(text: string): string {
  return text.split('\0', 1)[0] ?? '';
}
