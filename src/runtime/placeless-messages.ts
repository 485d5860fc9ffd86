// Messages of topics that are not persistent: brokers send all of them with the place 0:0 and none of them again. Here
// messages are told apart by their places, so each gets one of its own when it arrives.
import type { MessageId } from '../core/message-id.js';
import type { SubscriptionSpec } from '../core/subscription-spec.js';
import type { Clock } from '../ports/clock.js';
import type { ArrivedMessage } from './joined-subscription.js';

/** Whether no broker can be asked for it again: what it waits for, it waits for here. */
export function isPlaceless({ topic }: Pick<MessageId, 'topic'>): boolean {
  return topic.startsWith('non-persistent:');
}

/**
 * Of which messages of a subscription that is so: of none, of all, or of some, where its topics are of both kinds. A pattern
 * means topics that are persistent unless it names the others.
 */
export function placelessOf({ topics, pattern }: SubscriptionSpec): 'none' | 'some' | 'all' {
  const sources = pattern === undefined ? topics : [typeof pattern === 'string' ? pattern : pattern.source];
  const placeless = sources.filter((topic) => isPlaceless({ topic })).length;
  if (placeless === 0) return 'none';
  return placeless === sources.length ? 'all' : 'some';
}

export class PlacelessMessages {
  /** Another one with each start: what is derived from the ids of one start must not come again with the next. */
  readonly #ledgerId: number;
  #lastEntryId = -1;

  constructor(clock: Clock) {
    this.#ledgerId = clock.now();
  }

  /** The message as it is, or with a place of its own. */
  placed(message: ArrivedMessage): ArrivedMessage {
    if (!isPlaceless(message.id)) return message;
    this.#lastEntryId += 1;
    const place = { ledgerId: this.#ledgerId, entryId: this.#lastEntryId, batchIndex: -1, batchSize: 0 };
    return { ...message, id: { ...message.id, ...place } };
  }
}
