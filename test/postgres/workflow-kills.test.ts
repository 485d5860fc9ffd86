// A share of the campaign `workflow-kills`: real processes on PostgreSQL, ended by kill -9 in the middle of their work.
import { expect } from 'vitest';
import { test } from '../support/postgres/postgres-test.js';
import { runWorkflowKills } from '../support/workflow-kills/workflow-kills.js';

test('every workflow ends right, whichever process is killed', { timeout: 180_000 }, async ({ postgres }) => {
  const { url, schema } = postgres;
  const totals = { kills: 0, workflows: 0, effects: 0, inDoubt: 0 };
  const place = { store: { kind: 'postgres', url, schema }, broker: { kind: 'embedded' } } as const;

  expect(await runWorkflowKills({ seed: 5, kills: 3, place, totals })).toEqual([]);
  expect(totals.kills).toBe(3);
  // Statements of the closings too.
  expect(totals.workflows).toBe(56);
});
