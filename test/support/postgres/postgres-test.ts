// `test` for tests on a real PostgreSQL: what a test names of it it gets, or is skipped with the reason why not.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject, test as base } from 'vitest';
import { requirePostgres } from './required-postgres.js';
import type { ProvidedPostgres } from './required-postgres.js';

export interface PostgresFixtures {
  readonly postgres: PostgresPlace;
}

/** A schema of a test's own in the one server, which does not exist yet and goes with the test. */
export class PostgresPlace {
  readonly url: string;
  readonly schema = `test_${randomBytes(6).toString('hex')}`;
  /** For the test's own statements and stores. */
  readonly pool: pg.Pool;
  readonly #pools: pg.Pool[] = [];
  readonly #roles: string[] = [];

  constructor(url: string) {
    this.url = url;
    this.pool = this.newPool();
  }

  newPool(options: pg.PoolConfig = {}): pg.Pool {
    const pool = new pg.Pool({ connectionString: this.url, ...options });
    // Tests cut connections.
    pool.on('error', () => undefined);
    this.#pools.push(pool);
    return pool;
  }

  /** A user who may connect and nothing more. @returns its name and how it connects */
  async newRole(): Promise<{ readonly role: string; readonly url: string }> {
    const role = `test_${randomBytes(6).toString('hex')}`;
    const password = randomBytes(8).toString('hex');
    await this.pool.query(`CREATE ROLE ${role} LOGIN PASSWORD '${password}'`);
    this.#roles.push(role);
    const url = new URL(this.url);
    [url.username, url.password] = [role, password];
    return { role, url: url.href };
  }

  async end(): Promise<void> {
    await this.pool.query(`DROP SCHEMA IF EXISTS ${this.schema} CASCADE`);
    for (const role of this.#roles) await this.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    // A pool waits for each connection that a test which failed has not given back: nobody waits for it.
    for (const pool of this.#pools) if (!pool.ended) void pool.end();
  }
}

export const test = base.extend<PostgresFixtures>({
  postgres: async ({ skip }, use) => {
    const { url, missing } = provided();
    if (url === undefined) return skip(missing ?? 'no postgres');
    const place = new PostgresPlace(url);
    await use(place);
    await place.end();
  },
});

function provided(): ProvidedPostgres {
  const postgres = inject('postgres') as ProvidedPostgres | undefined;
  if (postgres !== undefined) return postgres;
  const missing = 'no postgres: none was looked for (the global set-up of the project "postgres" did not run)';
  requirePostgres(missing);
  return { url: undefined, missing };
}
