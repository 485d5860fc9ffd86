// Keys (or partitions) whose message was given up and waits for a person, with `onDeadLetter: 'block-key'`: which they
// are, and which message a person means by a key.
import { ConfigurationError, describeValue } from '../core/errors.js';
import type { MessageKey } from '../core/message.js';
import { formatMessageId } from '../core/message-id.js';
import { orderKeyOf } from '../core/message-key.js';
import type { BlockedKey } from '../ports/runtime-view.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { KeptDeliveries } from './kept-deliveries.js';
import type { Lanes } from './lanes.js';

export class BlockedKeys {
  readonly #lanes: Lanes;
  readonly #kept: KeptDeliveries;

  constructor(lanes: Lanes, kept: KeptDeliveries) {
    this.#lanes = lanes;
    this.#kept = kept;
  }

  list(): readonly BlockedKey[] {
    return this.#blocked().flatMap((record) => {
      const { message, givenUp } = record;
      const key = this.#lanes.byPartition ? message.id.topic : (message.orderingKey ?? message.key);
      if (givenUp === undefined || key === undefined) return [];
      const { cause, failure } = givenUp;
      const [topic, messageId] = [message.id.topic, formatMessageId(message.id)];
      return { key, topic, messageId, cause, reason: failure.reason, waiting: this.#lanes.waitingBehind(record) };
    });
  }

  /** Takes out the message that blocks `key`; undefined when none does. @throws ConfigurationError for what is no key */
  take(key: MessageKey): DeliveryRecord | undefined {
    if (typeof key !== 'string' && !((key as unknown) instanceof Uint8Array))
      throw new ConfigurationError([`"key" must be a text or bytes (Uint8Array), got ${describeValue(key)}`]);
    const wanted = this.#lanes.byPartition ? key : orderKeyOf({ key });
    const record = this.#blocked().find((blocked) => this.#lanes.keyOf(blocked) === wanted);
    if (record !== undefined) this.#kept.take((other) => other === record);
    return record;
  }

  /** What has no key blocks none. */
  #blocked(): readonly DeliveryRecord[] {
    return this.#kept.givenUp.filter((record) => this.#lanes.keyOf(record) !== undefined);
  }
}
