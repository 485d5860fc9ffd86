// What stands behind message ids when they are settled: an entry, a part of a batch, or several entries of one message.
import type { EntryPosition, MessageId } from '../../core/message-id.js';
import { BatchAcks, idDataOf } from './batch-acks.js';
import type { AckItem as BatchAckItem } from './batch-acks.js';
import { ChunkedAcks, ChunkedMessage } from '../../chunks/chunked-acks.js';
import type { MessageIdData } from './protocol/message-metadata.js';
import type { SeekTarget } from '../../core/topic-parts.js';

/** What an acknowledgement names; what is not known of it before the time of sending is asked for then. */
export type AckItem = BatchAckItem | ChunkedMessage;

/** How many ids an item takes in a command, about. */
export function idsIn(item: AckItem): number {
  return item instanceof ChunkedMessage ? item.entries.length : 1;
}

export function idDataOfAll(items: Iterable<AckItem>): readonly MessageIdData[] {
  const ids: MessageIdData[] = [];
  for (const item of items) {
    if (item instanceof ChunkedMessage) ids.push(...item.entriesToAcknowledge().map(placeOf));
    else ids.push(idDataOf(item));
  }
  return ids;
}

export class EntryAcks {
  readonly batches = new BatchAcks();
  readonly chunked = new ChunkedAcks();

  /** @throws PulseworkError MESSAGE_ID_INVALID when `id` cannot be acknowledged. */
  check(id: MessageId): void {
    this.batches.check(id);
  }

  /** What to send so that `id` is acknowledged; it has passed `check`. */
  acknowledge(id: MessageId): AckItem {
    return this.chunked.get(id) ?? this.batches.acknowledge(id);
  }

  /** The same for everything up to and including `id`, each item a command of its own. */
  acknowledgeThrough(id: MessageId): readonly AckItem[] {
    this.chunked.acknowledgedThrough(id);
    return this.batches.acknowledgeThrough(id);
  }

  /** The broker has answered `items`. */
  confirmed(items: Iterable<AckItem>): void {
    for (const item of items) {
      if (item instanceof ChunkedMessage) this.chunked.confirmed(item);
      else this.batches.confirmed([item]);
    }
  }

  /** These messages go back to the broker. @returns their entries, each once. */
  gaveBack(ids: readonly MessageId[]): readonly EntryPosition[] {
    const entries = this.chunked.gaveBack(ids);
    for (const entry of entries) this.batches.gaveBack(entry);
    return entries;
  }

  /** What names messages that failed: those of a batch with their place and what of it is not acknowledged (K-21). */
  failed(ids: readonly MessageId[]): readonly MessageIdData[] {
    return ids.map((id) => {
      if (id.batchIndex < 0) return placeOf(id);
      return { ...placeOf(id), batchIndex: id.batchIndex, ackSet: this.batches.leftOf(id) };
    });
  }

  /** With the first chunk of a message that came in chunks, where its id does not tell it. */
  seekTarget(to: SeekTarget): SeekTarget {
    if (typeof to !== 'object' || to instanceof Date) return to;
    return { ...to, firstChunk: to.firstChunk ?? this.chunked.get(to)?.first };
  }

  /** Everything goes to another consumer. */
  gaveBackAll(): void {
    this.batches.gaveBackAll();
  }

  /** A new registration: everything comes again. */
  registered(): void {
    this.batches.clear();
    this.chunked.registered();
  }
}

/** As commands name it: without what brokers know by the topic. */
export function placeOf({ ledgerId, entryId }: EntryPosition): MessageIdData {
  return { ledgerId, entryId };
}
