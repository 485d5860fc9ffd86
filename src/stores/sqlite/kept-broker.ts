// The topics of a broker as the store of its file has them in memory: numbers of rows, cursors, and nothing of entries. And
// how all of it is read when the file is opened.
import type { StoredBroker, StoredEntry, StoredLedger, StoredTopic } from '../../ports/broker-store.js';
import { PulseworkError } from '../../core/errors.js';
import type { BrokerStatements, LedgerRow } from './broker-statements.js';
import { fromText } from './broker-statements.js';
import { TextPool, entriesOf } from './entry-bytes.js';
import { KeptCursor } from './kept-cursor.js';

export class KeptTopic {
  readonly id: number;
  readonly name: string;
  readonly cursors = new Map<string, KeptCursor>();
  /** By rising ids. */
  ledgers: LedgerRow[] = [];
  isTerminated = false;
  isDropped = false;

  constructor(id: number, name: string) {
    this.id = id;
    this.name = name;
  }
}

export interface KeptBroker {
  readonly topics: Map<string, KeptTopic>;
  lastTopic: number;
  lastCursor: number;
  lastLedgerNumber: number;
}

/** @throws PulseworkError STORE_FORMAT_UNKNOWN where a row is not what this version, or an earlier one, writes. */
export function readBroker(
  name: string,
  sql: BrokerStatements,
): { readonly kept: KeptBroker; readonly stored: StoredBroker } {
  try {
    const kept = readTopics(sql);
    return { kept, stored: storedBroker(kept, sql) };
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof SyntaxError)) throw error;
    const text = `store "${name}": what it holds cannot be read (${error.message}); restore the file from a copy, or move it away to start without what it holds`;
    throw new PulseworkError('STORE_FORMAT_UNKNOWN', text, { cause: error });
  }
}

function readTopics(sql: BrokerStatements): KeptBroker {
  const topics = new Map<number, KeptTopic>();
  for (const row of sql.topics()) {
    const topic = new KeptTopic(Number(row['id']), String(row['name']));
    topic.isTerminated = row['is_terminated'] === 1;
    topics.set(topic.id, topic);
  }
  const ledgers = sql.ledgers();
  for (const ledger of ledgers) topics.get(ledger.topic)?.ledgers.push(ledger);
  const cursors = readCursors(sql, topics);
  return {
    topics: new Map([...topics.values()].map((topic) => [topic.name, topic])),
    lastTopic: largest(topics.keys()),
    lastCursor: largest(cursors.keys()),
    lastLedgerNumber: largest(ledgers.map(({ number }) => number)),
  };
}

function readCursors(sql: BrokerStatements, topics: ReadonlyMap<number, KeptTopic>): ReadonlyMap<number, KeptCursor> {
  const cursors = new Map<number, KeptCursor>();
  for (const row of sql.cursors()) {
    const place = { ledgerId: Number(row['ledger']), entryId: Number(row['entry']) };
    const cursor = new KeptCursor(Number(row['id']), fromText(row['name']), place);
    cursors.set(cursor.id, cursor);
    topics.get(Number(row['topic']))?.cursors.set(cursor.name, cursor);
  }
  for (const [kind, rows] of [['page', sql.acked()] as const, ['part', sql.ackedParts()] as const])
    for (const row of rows)
      cursors
        .get(Number(row['cursor']))
        ?.keep(kind, Number(row['ledger']), Number(row['number']), new Uint8Array(row['bits'] as Uint8Array));
  return cursors;
}

function storedBroker({ topics }: KeptBroker, sql: BrokerStatements): StoredBroker {
  const sequences = new Map<number, Map<string, number>>();
  for (const row of sql.sequences()) {
    const topic = Number(row['topic']);
    const own = sequences.get(topic) ?? new Map<string, number>();
    sequences.set(topic, own.set(fromText(row['producer']), Number(row['sequence'])));
  }
  const names = new TextPool();
  return {
    lastLedgerId: sql.lastLedgerId(),
    partitions: new Map(sql.partitions().map((row) => [String(row['topic']), Number(row['partitions'])])),
    topics: [...topics.values()].map((topic) => storedTopic(topic, sql, names, sequences.get(topic.id) ?? new Map())),
  };
}

function storedTopic(
  { name, isTerminated, ledgers, cursors }: KeptTopic,
  sql: BrokerStatements,
  names: TextPool,
  sequenceIds: ReadonlyMap<string, number>,
): StoredTopic {
  return {
    ...{ name, isTerminated, sequenceIds },
    ledgers: ledgers.map((ledger) => storedLedger(ledger, sql, names)).filter(({ entries }) => entries.length > 0),
    subscriptions: [...cursors.values()].map((cursor) => ({
      name: cursor.name,
      ledgerId: cursor.ledgerId,
      entryId: cursor.entryId,
      acknowledged: cursor.acknowledged(),
      parts: cursor.parts(),
    })),
  };
}

function storedLedger({ number, id }: LedgerRow, sql: BrokerStatements, names: TextPool): StoredLedger {
  const entries: (StoredEntry | undefined)[] = [];
  for (const { firstEntryId, bytes } of sql.blocks(number)) {
    while (entries.length < firstEntryId) entries.push(undefined);
    for (const entry of entriesOf(bytes, names)) entries.push(entry);
  }
  return { id, entries };
}

function largest(numbers: Iterable<number>): number {
  let last = 0;
  for (const number of numbers) last = Math.max(last, number);
  return last;
}
