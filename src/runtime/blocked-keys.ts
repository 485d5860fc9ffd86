// Keys (or partitions) whose message was given up and waits for a person, with `onDeadLetter: 'block-key'`: which they
// are, and which message a person means by a key.
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
    return this.#blocked().map((record) => {
      const { message, givenUp } = record;
      return {
        key: this.#lanes.byPartition ? message.id.topic : (message.orderingKey ?? message.key ?? ''),
        topic: message.id.topic,
        messageId: formatMessageId(message.id),
        cause: givenUp?.cause ?? 'poison',
        reason: givenUp?.failure.reason ?? '',
        waiting: this.#lanes.waitingBehind(record),
      };
    });
  }

  /** Takes out the message that blocks `key`; undefined when none does. */
  take(key: MessageKey): DeliveryRecord | undefined {
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
