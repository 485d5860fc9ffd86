// What every WorkflowStore must hold to, on each that there is.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteWorkflowStore } from 'pulsework/sqlite';
import { workflowStoreCases } from 'pulsework/testing';
import type { WorkflowStore } from 'pulsework/workflow';
import { memoryWorkflowStore } from 'pulsework/workflow';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sqliteDrivers } from '../support/metadata-places.js';

const newStores: Readonly<Record<string, (folder: string) => WorkflowStore>> = {
  memory: memoryWorkflowStore,
  ...Object.fromEntries(
    Object.entries(sqliteDrivers).map(([name, driver]) => [
      `sqlite by ${name}`,
      (folder: string) => sqliteWorkflowStore({ path: join(folder, 'workflows.db'), driver }),
    ]),
  ),
};

describe.each(Object.entries(newStores))('a workflow store (%s)', (_name, newStore) => {
  let folder: string;
  let store: WorkflowStore;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'pulsework-workflows-'));
    store = newStore(folder);
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  it.each(workflowStoreCases)('$title', async ({ run }) => {
    await store.open();
    await run(store);
    await store.close();
  });

  it('refuses to be used before it is open and after its last close', async () => {
    const key = { name: 'a', id: 'b' };

    await expect(store.get(key)).rejects.toMatchObject({ code: 'ILLEGAL_STATE' });
    await store.open();
    await store.open();
    await store.close();
    expect(await store.get(key)).toBeUndefined();
    await store.close();
    await expect(store.get(key)).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
  });
});
