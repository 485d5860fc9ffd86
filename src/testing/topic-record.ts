// Everything that the topics of an embedded broker have ever held, noted where it is stored: a test reads it without a
// subscription that would change what it looks at, and also what is long acknowledged.
import type { BrokerStore, EntryAddress } from '../broker/broker-store.js';
import type { Entry } from '../broker/entry.js';
import type { EncodedMessage } from '../core/message.js';
import type { MessageId } from '../core/message-id.js';
import { withoutPartition } from '../core/topic-name.js';

export interface RecordedMessage extends Pick<EncodedMessage, 'payload' | 'key' | 'properties'> {
  /** Its place among all that the broker has stored. */
  readonly order: number;
}

export class TopicRecord implements BrokerStore {
  /** By full topic name, partitions together; in the order of storing. */
  readonly #topics = new Map<string, RecordedMessage[]>();
  /** By partition, ledger and entry. */
  readonly #entries = new Map<string, Entry>();
  #stored = 0;
  #acknowledged = 0;

  /** Grows with each thing that the broker is told. */
  get activity(): number {
    return this.#stored + this.#acknowledged;
  }

  append(address: EntryAddress, entry: Entry): undefined {
    this.#note(address.topic, entry);
    this.#entries.set(keyOf(address), entry);
  }

  /** Its place is that of all others on its topic: it can be listed, but not found by its id. */
  passed(topic: string, entry: Entry): void {
    this.#note(topic, entry);
  }

  acknowledge(): undefined {
    this.#acknowledged++;
  }

  /** Undefined for a topic that has never held anything. @param topic full name without a partition */
  messages(topic: string): readonly RecordedMessage[] | undefined {
    return this.#topics.get(topic);
  }

  /** The message as it was published; undefined when none of this id was. @param id with its full topic name */
  find(id: MessageId): EncodedMessage | undefined {
    return this.#entries.get(keyOf(id))?.messageAt(Math.max(0, id.batchIndex));
  }

  /** @param partition full name, with a partition where there is one */
  #note(partition: string, entry: Entry): void {
    const topic = withoutPartition(partition);
    const messages = this.#topics.get(topic) ?? [];
    this.#topics.set(topic, messages);
    for (let index = 0; index < entry.messageCount; index++) {
      const { payload, key, properties } = entry.messageAt(index);
      messages.push({ payload, key, properties, order: this.#stored++ });
    }
  }
}

function keyOf({ topic, ledgerId, entryId }: EntryAddress): string {
  return `${topic} ${ledgerId}:${entryId}`;
}
