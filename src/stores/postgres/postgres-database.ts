// The schema of this library in a database that the user has opened: brought up to date before the first statement, and asked in
// his pool. Statements that came between others are repeated.
import type { PulseworkError } from '../../core/errors.js';
import type { Clock } from '../../ports/clock.js';
import type { PostgresClient, PostgresPool, PostgresQuerier, PostgresResult } from './postgres-client.js';
import { isToBeRepeated, postgresError } from './postgres-errors.js';
import { migrate, MIGRATIONS } from './postgres-format.js';

/** More is no bad luck any more. */
const MAX_TRIES = 5;
/** Before the second try, and so much more before each further one. */
const AGAIN_MS = 10;

export interface PostgresDatabaseOptions {
  readonly pool: PostgresPool;
  readonly schema: string;
  readonly clock: Clock;
  /** @default those of this version; for tests */
  readonly migrations?: readonly string[] | undefined;
}

export class PostgresDatabase {
  /** For errors. */
  readonly name: string;
  readonly #options: PostgresDatabaseOptions;
  #ready: Promise<void> | undefined;

  constructor(options: PostgresDatabaseOptions) {
    this.name = `postgres ${options.schema}`;
    this.#options = options;
  }

  /** Resolves when the schema is up to date; after a failure it tries again. @throws PulseworkError STORE_* */
  ready(): Promise<void> {
    this.#ready ??= this.#migrate().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }

  /** One statement, which is a transaction of its own. @throws PulseworkError STORE_*; it may have happened where the connection was lost */
  query(doing: string, text: string, values?: unknown[]): Promise<PostgresResult> {
    return this.#repeated(doing, () => this.#options.pool.query(text, values));
  }

  /**
   * All or nothing. `act` may be called more than once. @param begin what begins it. @default BEGIN
   * @throws PulseworkError STORE_*, as `query`, and what `act` throws
   */
  transaction<T>(doing: string, act: (client: PostgresQuerier) => Promise<T>, begin = 'BEGIN'): Promise<T> {
    return this.#repeated(doing, () => this.#withClient((client) => inTransaction(client, begin, act)));
  }

  /** A connection until it is released. Whoever has it listens to its errors. @throws PulseworkError STORE_* */
  async connect(doing: string): Promise<PostgresClient> {
    try {
      await this.ready();
      return await this.#options.pool.connect();
    } catch (error) {
      throw this.failed(doing, error);
    }
  }

  /** What is thrown for what PostgreSQL or its driver threw. */
  failed(doing: string, thrown: unknown): PulseworkError {
    return postgresError(this.name, doing, thrown);
  }

  async #migrate(): Promise<void> {
    const { schema, migrations = MIGRATIONS } = this.#options;
    try {
      await this.#withClient((client) => migrate(client, schema, this.name, migrations));
    } catch (error) {
      throw this.failed('opening', error);
    }
  }

  async #repeated<T>(doing: string, act: () => Promise<T>): Promise<T> {
    await this.ready();
    for (let tries = 1; ; tries++) {
      try {
        return await act();
      } catch (error) {
        if (!isToBeRepeated(error) || tries === MAX_TRIES) throw postgresError(this.name, doing, error, tries);
        const { clock } = this.#options;
        await new Promise<void>((resolve) => void clock.setTimer(tries * AGAIN_MS, resolve));
      }
    }
  }

  async #withClient<T>(act: (client: PostgresClient) => Promise<T>): Promise<T> {
    const client = await this.#options.pool.connect();
    let isLost = false;
    // What is under way on it rejects too.
    const lost = (): void => void (isLost = true);
    client.on('error', lost);
    try {
      return await act(client);
    } finally {
      client.off('error', lost);
      client.release(isLost);
    }
  }
}

async function inTransaction<T>(
  client: PostgresClient,
  begin: string,
  act: (client: PostgresQuerier) => Promise<T>,
): Promise<T> {
  try {
    await client.query(begin);
    const result = await act(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}
