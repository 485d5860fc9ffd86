// vitest's global set-up of the tests on PostgreSQL: one server for the whole run, ended with it. POSTGRES_URL names one that is
// there already.
import type { TestProject } from 'vitest/node';
import { PostgresServer, postgresMissing } from './postgres-server.js';
import { requirePostgres } from './required-postgres.js';

export default async function setUp(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const named = process.env['POSTGRES_URL'];
  if (named !== undefined && named !== '') {
    project.provide('postgres', { url: named, missing: undefined });
    return undefined;
  }
  const missing = postgresMissing();
  requirePostgres(missing);
  if (missing !== undefined) {
    project.provide('postgres', { url: undefined, missing });
    return undefined;
  }
  const server = await PostgresServer.start();
  project.provide('postgres', { url: server.url, missing: undefined });
  return () => server.stop();
}
