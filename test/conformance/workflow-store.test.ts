// What every WorkflowStore must hold to, on each that there is.
import type { WorkflowStore } from 'pulsework/workflow';
import { memoryWorkflowStore } from 'pulsework/workflow';
import { workflowStoreCases } from 'pulsework/testing';
import { describe, expect, it } from 'vitest';

const newStores: Readonly<Record<string, () => WorkflowStore>> = { memory: memoryWorkflowStore };

describe.each(Object.entries(newStores))('a workflow store (%s)', (_name, newStore) => {
  it.each(workflowStoreCases)('$title', async ({ run }) => {
    const store = newStore();
    await store.open();
    await run(store);
    await store.close();
  });

  it('refuses to be used before it is open and after its last close', async () => {
    const store = newStore();
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
