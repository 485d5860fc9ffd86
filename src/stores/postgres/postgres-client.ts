// What is used of a driver for PostgreSQL, and nothing more: the faces of `Pool` and of its clients in `pg`. Everything else
// that has them does too.

export type PostgresRow = Readonly<Record<string, unknown>>;

export interface PostgresResult {
  readonly rows: readonly PostgresRow[];
  /** Rows that were found or changed. */
  readonly rowCount: number | null;
}

/** Where a statement can be run: a pool, or the client that has a transaction open. */
export interface PostgresQuerier {
  /** One statement with parameters `$1`, `$2`..., or several without. */
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
}

/** One connection of a pool, until it is given back. */
export interface PostgresClient extends PostgresQuerier {
  /** Gives it back; with `true` it is closed instead. */
  release(destroy?: boolean): void;
  /** A connection that is lost says so here; without a listener that ends the process. */
  on(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
  /** Whatever comes on a channel that it listens to. */
  on(event: 'notification', listener: () => void): unknown;
}

/** A `Pool` of `pg`. */
export interface PostgresPool extends PostgresQuerier {
  connect(): Promise<PostgresClient>;
}
