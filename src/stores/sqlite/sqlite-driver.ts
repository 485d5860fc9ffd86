// What is used of a SQLite driver, and nothing more, with the adapters to the two faces that drivers have: that of
// `better-sqlite3`, which `libsql` has too, and that of `node:sqlite`. All calls are synchronous, as SQLite is.

export type SqliteValue = string | number | Uint8Array | null;
export type SqliteRow = Readonly<Record<string, SqliteValue>>;

/** Parameters are positional. A text holds no NUL: drivers differ about what comes behind one. */
export interface SqliteStatement {
  /** Of a statement that gives no rows. @returns how many rows it changed */
  run(...parameters: readonly SqliteValue[]): number;
  /** The first row. */
  get(...parameters: readonly SqliteValue[]): SqliteRow | undefined;
  all(...parameters: readonly SqliteValue[]): readonly SqliteRow[];
}

export interface SqliteConnection {
  /** Statements without parameters and results; transactions are begun and ended by it. */
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
  /** Asks, or sets. @returns the first column of the answer, undefined where there is none */
  pragma(source: string): SqliteValue | undefined;
  /** What a driver still holds of its statements may keep the file open until it is collected. */
  close(): void;
}

/** An open database of `better-sqlite3`, `libsql`, `node:sqlite` or of a driver with the face of one of them. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): unknown;
  close(): unknown;
}

/** What such a driver exports: `Database` or, of `node:sqlite`, `DatabaseSync`. */
export type SqliteDatabaseClass = new (path: string) => SqliteDatabase;

interface BetterSqlite3Statement {
  run(parameters: readonly SqliteValue[]): { readonly changes: number };
  get(parameters: readonly SqliteValue[]): object | undefined;
  all(parameters: readonly SqliteValue[]): readonly object[];
}

interface NodeSqliteStatement {
  run(...parameters: readonly SqliteValue[]): { readonly changes: number | bigint };
  get(...parameters: readonly SqliteValue[]): object | undefined;
  all(...parameters: readonly SqliteValue[]): readonly object[];
}

export function sqliteConnection(database: SqliteDatabase): SqliteConnection {
  return hasPragma(database) ? betterSqlite3Connection(database) : nodeSqliteConnection(database);
}

interface WithPragma extends SqliteDatabase {
  pragma(source: string): unknown;
}

function hasPragma(database: SqliteDatabase): database is WithPragma {
  return typeof (database as { readonly pragma?: unknown }).pragma === 'function';
}

function betterSqlite3Connection(database: WithPragma): SqliteConnection {
  return {
    exec: (sql) => void database.exec(sql),
    prepare: (sql) => {
      const statement = database.prepare(sql) as BetterSqlite3Statement;
      // As one list: libsql takes a lone value for named parameters.
      return {
        run: (...parameters) => statement.run(parameters).changes,
        get: (...parameters) => optionalRow(statement.get(parameters)),
        all: (...parameters) => statement.all(parameters).map(row),
      };
    },
    pragma: (source) => firstColumn(database.pragma(source)),
    close: () => void database.close(),
  };
}

function nodeSqliteConnection(database: SqliteDatabase): SqliteConnection {
  const prepared = (sql: string): NodeSqliteStatement => database.prepare(sql) as NodeSqliteStatement;
  return {
    exec: (sql) => void database.exec(sql),
    prepare: (sql) => {
      const statement = prepared(sql);
      return {
        run: (...parameters) => Number(statement.run(...parameters).changes),
        get: (...parameters) => optionalRow(statement.get(...parameters)),
        all: (...parameters) => statement.all(...parameters).map(row),
      };
    },
    pragma: (source) => firstColumn(prepared(`PRAGMA ${source}`).all()),
    close: () => void database.close(),
  };
}

function optionalRow(given: object | undefined): SqliteRow | undefined {
  return given === undefined ? undefined : row(given);
}

/** libsql gives some bytes as an ArrayBuffer. */
function row(given: object): SqliteRow {
  const columns = given as Record<string, SqliteValue | ArrayBuffer>;
  for (const [name, value] of Object.entries(columns))
    if (value instanceof ArrayBuffer) columns[name] = new Uint8Array(value);
  return columns as SqliteRow;
}

function firstColumn(rows: unknown): SqliteValue | undefined {
  const [first] = rows as readonly object[];
  return first === undefined ? undefined : (Object.values(first)[0] as SqliteValue | undefined);
}
