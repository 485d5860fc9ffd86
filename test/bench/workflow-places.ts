// Where the benchmarks of workflows keep them: in memory, in a SQLite file, in PostgreSQL. Each round has a place of its own.
import { mkdtemp, rm } from 'node:fs/promises';
import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { postgresWorkflowStore } from '../../src/postgres.js';
import { sqliteWorkflowStore } from '../../src/sqlite.js';
import type { WorkflowStore } from '../../src/workflow.js';
import { memoryWorkflowStore } from '../../src/workflow.js';
import type * as PostgresSupport from '../support/postgres/postgres-server.js';
import { requiredVariable } from './wire-broker.js';

export interface WorkflowPlace {
  readonly store: WorkflowStore;
  /** What its workflows take there; undefined where they are in this process. */
  readonly bytes: () => Promise<number | undefined>;
}

const SUPPORT = '../support/postgres';

export type PlaceName = 'memory' | 'SQLite' | 'PostgreSQL';
export const PLACES: readonly PlaceName[] = ['memory', 'SQLite', 'PostgreSQL'];

const PLACES_BY_NAME: Readonly<Record<PlaceName, <T>(use: (place: WorkflowPlace) => Promise<T>) => Promise<T>>> = {
  memory: (use) => use({ store: memoryWorkflowStore(), bytes: async () => undefined }),
  SQLite: inFile,
  PostgreSQL: inSchema,
};

export function inPlace<T>(name: PlaceName, use: (place: WorkflowPlace) => Promise<T>): Promise<T> {
  return PLACES_BY_NAME[name](use);
}

let prepared: Promise<string | undefined> | undefined;

/**
 * Why they cannot run; undefined when they can. PostgreSQL is the one at `POSTGRES_URL`, or one of their own that forces each
 * commit to the disk, as the file of SQLite does.
 */
export function preparePostgres(): Promise<string | undefined> {
  return (prepared ??= prepareOnce());
}

async function prepareOnce(): Promise<string | undefined> {
  if (process.env['POSTGRES_URL'] === undefined) {
    // Loaded here: the compiled code has no such file, and its processes do not prepare.
    const support = (await import(`${SUPPORT}/postgres-server.js`)) as typeof PostgresSupport;
    const missing = support.postgresMissing();
    if (missing !== undefined) return missing;
    const server = await support.PostgresServer.start({ fsync: 'on', full_page_writes: 'on', shared_buffers: '128MB' });
    process.env['POSTGRES_URL'] = server.url;
  }
  return undefined;
}

async function inFile<T>(use: (place: WorkflowPlace) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'pulsework-bench-'));
  const path = join(folder, 'workflows.db');
  try {
    const store = sqliteWorkflowStore({ path });
    return await use({ store, bytes: async () => statSync(path).size + statSync(`${path}-wal`).size });
  } finally {
    await rm(folder, { recursive: true });
  }
}

let schemas = 0;

async function inSchema<T>(use: (place: WorkflowPlace) => Promise<T>): Promise<T> {
  const { Pool } = createRequire(import.meta.url)('pg') as typeof pg;
  const pool = new Pool({ connectionString: requiredVariable('POSTGRES_URL'), max: 16 });
  const schema = `workflow_bench_${process.pid}_${++schemas}`;
  const bytes = async (): Promise<number> => {
    const sql = `SELECT sum(pg_total_relation_size(c.oid)) AS bytes FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`;
    const { rows } = await pool.query<{ readonly bytes: string }>(sql, [schema]);
    return Number(rows[0]?.bytes);
  };
  try {
    return await use({ store: postgresWorkflowStore({ pool, schema }), bytes });
  } finally {
    await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await pool.end();
  }
}
