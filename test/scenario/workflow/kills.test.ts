// A share of the campaign `workflow-kills`: real processes on SQLite, ended by kill -9 in the middle of their work.
import { expect, it } from 'vitest';
import { runWorkflowKills } from '../../support/workflow-kills/workflow-kills.js';

it('every workflow ends right, whichever process is killed', { timeout: 180_000 }, async () => {
  const totals = { kills: 0, workflows: 0, effects: 0, inDoubt: 0 };
  const place = { store: { kind: 'sqlite' }, broker: { kind: 'embedded' } } as const;

  expect(await runWorkflowKills({ seed: 7, kills: 3, place, totals })).toEqual([]);
  expect(totals.kills).toBe(3);
  // Something was cut in its middle.
  expect(totals.inDoubt).toBeGreaterThan(0);
});
