// A worker that is parted from PostgreSQL while its step runs, and comes back after another one has taken over.
import { postgresWorkflowStore } from 'pulsework/postgres';
import { test } from '../support/postgres/postgres-test.js';
import { PARTITIONS, expectNoOlderWrites } from '../support/workflow/partition-cases.js';

for (const [partition, comesBack] of PARTITIONS)
  test(`no write under an older epoch is accepted (${partition}, back ${comesBack})`, async ({ postgres }) => {
    const newStore = () => postgresWorkflowStore({ pool: postgres.newPool(), schema: postgres.schema });
    await expectNoOlderWrites(partition, comesBack, newStore);
  });
