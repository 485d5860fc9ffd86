// Producer batches that mix keys, where order per key is asked for. A broker sends the whole entry to the consumer of its
// first message's key (K-01), so the others may be handled beside later ones of their key elsewhere. Reported once for each
// producer: it must batch by key, or not at all.
import type { ReceivedMessage } from '../core/message.js';
import { sameEntry } from '../core/message-id.js';
import type { MessageId } from '../core/message-id.js';
import { orderKeyOf } from '../core/message-key.js';
import type { Logger } from '../ports/logger.js';

/** More producers than this are not told apart: each connection of a client may make up a new name. */
const MAX_PRODUCERS = 1_000;

export class MixedEntries {
  readonly #handler: string;
  readonly #logger: Logger;
  readonly #reported = new Set<string>();
  /** The entry that messages came from last, and the key of its first one here. */
  #last: { readonly id: MessageId; readonly key: string | undefined } | undefined;

  constructor(handler: string, logger: Logger) {
    this.#handler = handler;
    this.#logger = logger;
  }

  /** Messages of one entry arrive one after the other. */
  arrived(message: ReceivedMessage): void {
    const { id } = message;
    if (id.batchSize <= 1) return;
    const key = orderKeyOf(message);
    const last = this.#last;
    if (last === undefined || last.id.topic !== id.topic || !sameEntry(last.id, id)) this.#last = { id, key };
    else if (last.key !== key) this.#report(message);
  }

  #report({ id, producerName = 'unknown' }: ReceivedMessage): void {
    if (this.#reported.has(producerName) || this.#reported.size >= MAX_PRODUCERS) return;
    this.#reported.add(producerName);
    this.#logger.error(
      'a producer batch mixes keys: their order cannot be kept; let the producer batch by key, or not at all',
      { handler: this.#handler, producer: producerName, topic: id.topic },
    );
  }
}
