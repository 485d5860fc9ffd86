// What changes in a broker besides entries and acknowledgements: in memory at once, in the file with the next commit.
import type { BrokerChange } from '../../ports/broker-store.js';
import type { Unwritten } from './commit-group.js';
import type { KeptBroker } from './kept-broker.js';
import { KeptTopic } from './kept-broker.js';
import type { EntryPlace } from './kept-cursor.js';
import { KeptCursor } from './kept-cursor.js';

/** What is changed of a topic that is not there is void. */
export function applyChange(change: BrokerChange, kept: KeptBroker, unwritten: Unwritten): void {
  if (change.kind === 'partitions') {
    const { topic: name, partitions } = change;
    unwritten.changes.push((sql) => sql.putPartitions(name, partitions));
    return;
  }
  const topic = kept.topics.get(change.topic);
  if (topic !== undefined) changeTopic(topic, change, kept, unwritten);
  if (change.kind === 'topic-created') createTopic(change.topic, kept, unwritten);
}

function changeTopic(
  topic: KeptTopic,
  change: Exclude<BrokerChange, { readonly kind: 'partitions' }>,
  kept: KeptBroker,
  unwritten: Unwritten,
): void {
  switch (change.kind) {
    case 'topic-created':
    case 'topic-deleted':
      deleteTopic(topic, kept, unwritten);
      return;
    case 'topic-terminated':
      unwritten.changes.push((sql) => sql.putTopic(topic.id, topic.name, true));
      return;
    case 'cursor':
      setCursor(topic, change.subscription, change, kept, unwritten);
      return;
    case 'subscription-deleted':
      deleteCursor(topic, change.subscription, unwritten);
      return;
    case 'trimmed':
      trim(topic, change.firstLedgerId, unwritten);
      return;
    case 'producer-forgotten': {
      const { producerName } = change;
      unwritten.changes.push((sql) => sql.deleteSequence(topic.id, producerName));
    }
  }
}

function createTopic(name: string, kept: KeptBroker, unwritten: Unwritten): void {
  kept.lastTopic += 1;
  const topic = new KeptTopic(kept.lastTopic, name);
  kept.topics.set(name, topic);
  unwritten.changes.push((sql) => sql.putTopic(topic.id, name, false));
}

function deleteTopic(topic: KeptTopic, kept: KeptBroker, unwritten: Unwritten): void {
  topic.isDropped = true;
  kept.topics.delete(topic.name);
  for (const name of [...topic.cursors.keys()]) deleteCursor(topic, name, unwritten);
  trim(topic, Infinity, unwritten);
  unwritten.changes.push((sql) => sql.deleteTopic(topic.id));
}

function setCursor(topic: KeptTopic, name: string, place: EntryPlace, kept: KeptBroker, unwritten: Unwritten): void {
  const known = topic.cursors.get(name);
  known?.set(place);
  const cursor = known ?? new KeptCursor((kept.lastCursor += 1), name, place);
  topic.cursors.set(name, cursor);
  unwritten.changes.push((sql) => {
    sql.putCursor(topic.id, cursor);
    sql.deleteAcked(cursor.id, Infinity);
  });
}

function deleteCursor(topic: KeptTopic, name: string, unwritten: Unwritten): void {
  const cursor = topic.cursors.get(name);
  if (cursor === undefined) return;
  cursor.delete();
  topic.cursors.delete(name);
  unwritten.changes.push((sql) => sql.deleteCursor(cursor.id));
}

function trim(topic: KeptTopic, firstLedgerId: number, unwritten: Unwritten): void {
  const trimmed = topic.ledgers.filter(({ id }) => id < firstLedgerId);
  if (trimmed.length === 0) return;
  topic.ledgers = topic.ledgers.filter(({ id }) => id >= firstLedgerId);
  const cursors = [...topic.cursors.values()];
  for (const cursor of cursors) cursor.trim(firstLedgerId);
  unwritten.frees = true;
  unwritten.changes.push((sql) => {
    for (const { number } of trimmed) sql.deleteLedger(number);
    for (const { id } of cursors) sql.deleteAcked(id, firstLedgerId);
  });
}
