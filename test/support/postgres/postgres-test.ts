// `test` for tests on a real PostgreSQL: what a test names of it it gets, or is skipped with the reason why not.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { expect, inject, test as base } from 'vitest';
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
    const pool = new pg.Pool({ connectionString: this.url, application_name: this.schema, ...options });
    // Tests cut connections, also those that they have taken from the pool.
    pool.on('error', () => undefined);
    pool.on('connect', (client) => client.on('error', () => undefined));
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

  /** Resolves once so many connections wait for a lock. @param name of their application. @default the one of these pools */
  async waiting(count: number, name = this.schema): Promise<void> {
    const sql = `SELECT count(*)::integer AS count FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`;
    const found = async () => (await this.pool.query<{ count: number }>(sql, [name])).rows[0]?.count;
    await expect.poll(found).toBe(count);
  }

  async end(): Promise<void> {
    // A test that failed may have left a transaction open.
    const others = 'pid <> pg_backend_pid() AND application_name LIKE $1';
    await this.pool.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${others}`, [
      `${this.schema}%`,
    ]);
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
