// Settings of a connection that is the user's: changed for a transaction of this library that needs others, then put back.
import { PulseworkError } from '../../core/errors.js';
import type { SqliteConnection } from './sqlite-driver.js';

/**
 * More than FULL, which does not force the end of a rollback journal to the disk. With a log (WAL) it is the same. On a Mac it takes
 * a call of its own to get behind the cache of the disk.
 */
const DURABLE = { synchronous: 3, fullfsync: 1 } as const;

/** With them the death of a process in the middle of a transaction damages the file, and `OFF` cannot roll back. */
const UNSAFE_JOURNALS: readonly unknown[] = ['off', 'memory'];

/**
 * From here on a commit is on the disk before it is answered, where the settings of the user say less.
 * @param connection in no transaction: SQLite refuses it inside, as it refuses to begin one
 * @returns puts back what was set; in no transaction either
 */
export function forceToDisk(connection: SqliteConnection): () => void {
  const changed = Object.entries(DURABLE).flatMap(([name, needed]) => {
    // What a driver does not know it cannot be without.
    const was = Number(connection.pragma(name) ?? needed);
    return was >= needed ? [] : [{ name, needed, was }];
  });
  for (const { name, needed } of changed) connection.pragma(`${name} = ${needed}`);
  return () => {
    for (const { name, was } of changed) connection.pragma(`${name} = ${was}`);
  };
}

/** `act` while SQLite waits at most `waitMs` for others: the thread stands still meanwhile. */
export function withBusyTimeout<T>(connection: SqliteConnection, waitMs: number, act: () => T): T {
  const was = Number(connection.pragma('busy_timeout'));
  if (was <= waitMs) return act();
  connection.pragma(`busy_timeout = ${waitMs}`);
  try {
    return act();
  } finally {
    connection.pragma(`busy_timeout = ${was}`);
  }
}

/** @throws PulseworkError STORE_NOT_DURABLE for a file that a crash would damage. A database in memory ends with its process anyway. */
export function checkJournal(connection: SqliteConnection, name: string): void {
  const mode = connection.pragma('journal_mode');
  if (!UNSAFE_JOURNALS.includes(mode)) return;
  const place = connection.prepare(`SELECT file FROM pragma_database_list WHERE name = 'main'`).get();
  if (place === undefined || place['file'] === '' || place['file'] === null) return;
  const rule = `its journal mode is ${String(mode)}, with which a crash in the middle of a transaction damages the file`;
  throw new PulseworkError('STORE_NOT_DURABLE', `store "${name}": ${rule}; set "PRAGMA journal_mode = WAL"`);
}
