// A worker that is parted from the store while its step runs, and comes back after another one has taken over: in memory and in SQLite.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteWorkflowStore } from 'pulsework/sqlite';
import { memoryWorkflowStore } from 'pulsework/workflow';
import { describe, it } from 'vitest';
import { PARTITIONS, expectNoOlderWrites } from '../../support/workflow/partition-cases.js';

describe('two workers on a store in memory', () => {
  it.each(PARTITIONS)('no write under an older epoch is accepted (%s, back %s)', async (partition, comesBack) => {
    const store = memoryWorkflowStore();
    await expectNoOlderWrites(partition, comesBack, () => store);
  });
});

describe('two workers on a store in SQLite', () => {
  it.each(PARTITIONS)('no write under an older epoch is accepted (%s, back %s)', async (partition, comesBack) => {
    const folder = mkdtempSync(join(tmpdir(), 'pulsework-partition-'));
    try {
      await expectNoOlderWrites(partition, comesBack, () =>
        sqliteWorkflowStore({ path: join(folder, 'workflows.db') }),
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
