// The SQL of a durable broker: one place that knows its tables. Every change may be made again and then changes nothing.
import { preparedStatements } from './prepared-statements.js';
import type { AckedBits, KeptCursor } from './kept-cursor.js';
import type { SqliteConnection, SqliteRow, SqliteStatement, SqliteValue } from './sqlite-driver.js';

/** Entries of a ledger are found by its number and their id in one integer, which has 53 bits in JavaScript. */
export const MAX_LEDGER_ENTRIES = 2 ** 24;
/** In one answer while the file is read: so many blocks are in memory twice. */
const ROWS_AT_ONCE = 256;
/** Free pages, of 4 KiB, below which a file is not made smaller: it will need them again. */
const FREE_PAGES = 1_024;

export interface LedgerRow {
  /** Of this file, small. */
  readonly number: number;
  readonly topic: number;
  /** The broker's. */
  readonly id: number;
}

export class BrokerStatements {
  readonly #connection: SqliteConnection;
  readonly #sql: (text: string) => SqliteStatement;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.#sql = preparedStatements(connection);
  }

  putPartitions(topic: string, partitions: number): void {
    if (partitions === 0) this.#run('DELETE FROM broker_partitions WHERE topic = ?', topic);
    else this.#run('INSERT OR REPLACE INTO broker_partitions VALUES (?, ?)', topic, partitions);
  }

  putTopic(id: number, name: string, isTerminated: boolean): void {
    this.#run('INSERT OR REPLACE INTO broker_topic VALUES (?, ?, ?)', id, name, isTerminated ? 1 : 0);
  }

  deleteTopic(id: number): void {
    this.#run('DELETE FROM broker_sequence WHERE topic = ?', id);
    this.#run('DELETE FROM broker_topic WHERE id = ?', id);
  }

  putLedger({ number, topic, id }: LedgerRow): void {
    this.#run('INSERT OR REPLACE INTO broker_ledger VALUES (?, ?, ?)', number, topic, id);
    this.#run('UPDATE broker_number SET last_ledger = max(last_ledger, ?)', id);
  }

  deleteLedger(number: number): void {
    const first = number * MAX_LEDGER_ENTRIES;
    this.#run('DELETE FROM broker_block WHERE place >= ? AND place < ?', first, first + MAX_LEDGER_ENTRIES);
    this.#run('DELETE FROM broker_ledger WHERE number = ?', number);
  }

  putBlock(ledgerNumber: number, firstEntryId: number, bytes: Uint8Array): void {
    this.#run(
      'INSERT OR REPLACE INTO broker_block VALUES (?, ?)',
      ledgerNumber * MAX_LEDGER_ENTRIES + firstEntryId,
      bytes,
    );
  }

  putSequence(topic: number, producer: string, sequenceId: number): void {
    this.#run('INSERT OR REPLACE INTO broker_sequence VALUES (?, ?, ?)', topic, asText(producer), sequenceId);
  }

  deleteSequence(topic: number, producer: string): void {
    this.#run('DELETE FROM broker_sequence WHERE topic = ? AND producer = ?', topic, asText(producer));
  }

  putCursor(topic: number, { id, name, ledgerId, entryId }: KeptCursor): void {
    this.#run(
      'INSERT OR REPLACE INTO broker_cursor VALUES (?, ?, ?, ?, ?)',
      id,
      topic,
      asText(name),
      ledgerId,
      entryId,
    );
  }

  moveCursor({ id, ledgerId, entryId }: KeptCursor): void {
    this.#run('UPDATE broker_cursor SET ledger = ?, entry = ? WHERE id = ?', ledgerId, entryId, id);
  }

  /** @param before the id of a ledger, or `Infinity` for all. */
  deleteAcked(cursor: number, before: number): void {
    const limit = Math.min(before, Number.MAX_SAFE_INTEGER);
    this.#run('DELETE FROM broker_acked WHERE cursor = ? AND ledger < ?', cursor, limit);
    this.#run('DELETE FROM broker_acked_part WHERE cursor = ? AND ledger < ?', cursor, limit);
  }

  deleteCursor(id: number): void {
    this.deleteAcked(id, Infinity);
    this.#run('DELETE FROM broker_cursor WHERE id = ?', id);
  }

  putPage({ cursor, ledgerId, number, bytes }: AckedBits): void {
    this.#run('INSERT OR REPLACE INTO broker_acked VALUES (?, ?, ?, ?)', cursor.id, ledgerId, number, bytes);
  }

  putPart({ cursor, ledgerId, number, bytes }: AckedBits): void {
    this.#run('INSERT OR REPLACE INTO broker_acked_part VALUES (?, ?, ?, ?)', cursor.id, ledgerId, number, bytes);
  }

  deletePart({ cursor, ledgerId, number }: AckedBits): void {
    const row = 'cursor = ? AND ledger = ? AND entry = ?';
    this.#run(`DELETE FROM broker_acked_part WHERE ${row}`, cursor.id, ledgerId, number);
  }

  /** Gives the disk back what most of the file is free of, a part at a time. */
  shrink(): void {
    const free = Number(this.#connection.pragma('freelist_count'));
    if (free < FREE_PAGES || 2 * free < Number(this.#connection.pragma('page_count'))) return;
    this.#connection.pragma(`incremental_vacuum(${FREE_PAGES})`);
  }

  lastLedgerId(): number {
    return Number(this.#all('SELECT last_ledger FROM broker_number')[0]?.['last_ledger']);
  }

  partitions(): readonly SqliteRow[] {
    return this.#all('SELECT topic, partitions FROM broker_partitions');
  }

  topics(): readonly SqliteRow[] {
    return this.#all('SELECT id, name, is_terminated FROM broker_topic ORDER BY id');
  }

  ledgers(): readonly LedgerRow[] {
    const rows = this.#all('SELECT number, topic, id FROM broker_ledger ORDER BY id');
    return rows.map((row) => ({ number: Number(row['number']), topic: Number(row['topic']), id: Number(row['id']) }));
  }

  cursors(): readonly SqliteRow[] {
    return this.#all('SELECT id, topic, name, ledger, entry FROM broker_cursor ORDER BY id');
  }

  acked(): readonly SqliteRow[] {
    return this.#all('SELECT cursor, ledger, page AS number, bits FROM broker_acked');
  }

  ackedParts(): readonly SqliteRow[] {
    return this.#all('SELECT cursor, ledger, entry AS number, bits FROM broker_acked_part');
  }

  sequences(): readonly SqliteRow[] {
    return this.#all('SELECT topic, producer, sequence FROM broker_sequence');
  }

  /** In the order of their entries. */
  *blocks(ledgerNumber: number): Generator<{ readonly firstEntryId: number; readonly bytes: Uint8Array }> {
    const first = ledgerNumber * MAX_LEDGER_ENTRIES;
    for (let from = first; ;) {
      const rows = this.#all(
        `SELECT place, entries FROM broker_block WHERE place >= ? AND place < ? ORDER BY place LIMIT ${ROWS_AT_ONCE}`,
        from,
        first + MAX_LEDGER_ENTRIES,
      );
      for (const row of rows) yield { firstEntryId: Number(row['place']) - first, bytes: row['entries'] as Uint8Array };
      if (rows.length < ROWS_AT_ONCE) return;
      from = Number(rows.at(-1)?.['place']) + 1;
    }
  }

  #all(text: string, ...values: readonly SqliteValue[]): readonly SqliteRow[] {
    return this.#sql(text).all(...values);
  }

  #run(text: string, ...values: readonly SqliteValue[]): void {
    this.#sql(text).run(...values);
  }
}

/** Names of subscriptions and producers may be any text, and SQLite's end at a NUL. */
function asText(name: string): string {
  return JSON.stringify(name);
}

export function fromText(text: SqliteValue | undefined): string {
  return JSON.parse(String(text)) as string;
}
