// The SQL of a metadata store: one place that knows its tables.
import type { IndexedEntry, IndexKey, IndexRange, MetadataEntry, PathRange } from '../../ports/metadata-store.js';
import { compareMetadataNames, nameBelow } from '../../core/metadata-rules.js';
import { preparedStatements } from './prepared-statements.js';
import type { SqliteConnection, SqliteRow, SqliteStatement, SqliteValue } from './sqlite-driver.js';

const ENTRY = 'SELECT path, value, version FROM metadata_entry';
const INDEXED = `SELECT key, path, value, version FROM metadata_index JOIN metadata_entry USING (path) WHERE name = ?`;
const INDEX_ORDER = 'ORDER BY key, path LIMIT ?';
/** SQLite's word for no limit. */
const ALL = -1;

export class MetadataStatements {
  readonly #connection: SqliteConnection;
  readonly #sql: (text: string) => SqliteStatement;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.#sql = preparedStatements(connection);
  }

  get(path: string): MetadataEntry | undefined {
    const row = this.#sql(`${ENTRY} WHERE path = ?`).get(path);
    return row === undefined ? undefined : entryOf(row);
  }

  versionOf(path: string): number | undefined {
    const row = this.#sql('SELECT version FROM metadata_entry WHERE path = ?').get(path);
    return row === undefined ? undefined : Number(row['version']);
  }

  /** @param isNew nothing is there that has to go first */
  put(entry: MetadataEntry, indexes: readonly IndexKey[], isNew: boolean): void {
    if (!isNew) this.#leaveIndexes(entry.path);
    this.#sql('INSERT OR REPLACE INTO metadata_entry VALUES (?, ?, ?)').run(entry.path, entry.value, entry.version);
    for (const { index, key } of indexes)
      this.#sql('INSERT INTO metadata_index VALUES (?, ?, ?)').run(index, key, entry.path);
  }

  delete(path: string): void {
    this.#leaveIndexes(path);
    this.#sql('DELETE FROM metadata_entry WHERE path = ?').run(path);
  }

  /** Numbers are for versions and sequences alike, and survive what they were given to. */
  nextNumber(): number {
    this.#sql('UPDATE metadata_number SET last = last + 1').run();
    return this.lastNumber();
  }

  lastNumber(): number {
    return Number(this.#sql('SELECT last FROM metadata_number').get()?.['last']);
  }

  /** Whether anything else has changed the file since it was asked last: the answer is another one then. */
  dataVersion(): SqliteValue | undefined {
    return this.#connection.pragma('data_version');
  }

  /** `to` is not in it. */
  hasPathBetween(after: string, to: string): boolean {
    return this.#sql('SELECT 1 FROM metadata_entry WHERE path > ? AND path < ? LIMIT 1').get(after, to) !== undefined;
  }

  scan({ from = '', after, to, limit = ALL }: PathRange): readonly MetadataEntry[] {
    const [bounds, values] = where([
      // One bound below: SQLite goes by one, and not always by the nearer.
      after !== undefined && compareMetadataNames(after, from) >= 0 ? ['path > ?', after] : ['path >= ?', from],
      ['path < ?', to],
    ]);
    return this.#sql(`${ENTRY} WHERE ${bounds} ORDER BY path LIMIT ?`)
      .all(...values, limit)
      .map(entryOf);
  }

  scanIndex({ index, key, from = '', after, to, limit = ALL }: IndexRange): readonly IndexedEntry[] {
    const [bounds, values] = where([
      ['key = ?', key],
      ['key >= ?', key === undefined ? laterOf(from, after?.key) : undefined],
      ['key < ?', to],
      // Within one key the path alone: SQLite would go through all that is before it.
      after?.key === key ? ['path > ?', after?.path] : ['(key, path) > (?, ?)', after && [after.key, after.path]],
    ]);
    return this.#sql(`${INDEXED} AND ${bounds} ${INDEX_ORDER}`)
      .all(index, ...values, limit)
      .map((row) => ({ key: String(row['key']), ...entryOf(row) }));
  }

  /** A seek per name, however much is below each. @param above ends in a slash */
  children(above: string): ReadonlySet<string> {
    const names = new Set<string>();
    const end = `${above.slice(0, -1)}0`; // '0' comes right behind '/'
    const seek = this.#sql('SELECT path FROM metadata_entry WHERE path >= ? AND path < ? ORDER BY path LIMIT 1');
    for (let row = seek.get(above, end); row !== undefined;) {
      const path = String(row['path']);
      const name = nameBelow(above, path);
      names.add(name);
      // Behind the entry itself, in which no NUL can follow, come others such as `name-2`, and only then what is below it.
      const reached = path.length === above.length + name.length ? `${path}\u0001` : `${above}${name}0`;
      row = seek.get(reached, end);
    }
    return names;
  }

  #leaveIndexes(path: string): void {
    this.#sql('DELETE FROM metadata_index WHERE path = ?').run(path);
  }
}

function laterOf(name: string, other: string | undefined): string {
  return other !== undefined && compareMetadataNames(other, name) > 0 ? other : name;
}

type Bound = readonly [sql: string, value: string | readonly string[] | undefined];

/** Those that are given. */
function where(bounds: readonly Bound[]): [sql: string, values: readonly string[]] {
  const given = bounds.filter(([, value]) => value !== undefined);
  return [given.map(([sql]) => sql).join(' AND '), given.flatMap(([, value]) => value as string | readonly string[])];
}

function entryOf(row: SqliteRow): MetadataEntry {
  return { path: String(row['path']), value: row['value'] as Uint8Array, version: Number(row['version']) };
}
