// What `npm run campaign` makes of its runs: the report, the exit code, and that nothing goes on for ever.
import { expect, it } from 'vitest';
import type { Campaign } from '../../campaign/campaign.js';
import { runCampaign } from '../../campaign/run-campaign.js';

const NO_PROGRESS = { write: () => undefined };

async function run(campaign: Partial<Campaign>, runs = 3, seed = 5) {
  const lines: string[] = [];
  const whole: Campaign = { name: 'c', says: 'is tested', defaultRuns: 1, run: async () => [], ...campaign };
  const exitCode = await runCampaign(whole, { runs, seed, progress: NO_PROGRESS, report: (line) => lines.push(line) });
  return { exitCode, lines, text: lines.join('\n') };
}

it('gives each run the next seed, and 0 when all held', async () => {
  const seeds: number[] = [];

  const { exitCode, text } = await run({ run: async (seed) => (seeds.push(seed), []) });

  expect({ exitCode, seeds }).toEqual({ exitCode: 0, seeds: [5, 6, 7] });
  expect(text).toMatch(/^c: 3 runs, seeds 5 to 7, 0 violated, \d+\.\d s$/);
});

it('shows what was violated with the command that replays it, goes on, and gives 1', async () => {
  const { exitCode, lines } = await run({ run: async (seed) => (seed === 6 ? ['one lost', 'one twice'] : []) });

  expect(exitCode).toBe(1);
  expect(lines.slice(0, 4)).toEqual([
    'c, seed 6: 2 violated',
    '  - one lost',
    '  - one twice',
    '  replay: npm run campaign -- c --runs 1 --seed 6',
  ]);
  expect(lines[4]).toMatch(/^c: 3 runs, seeds 5 to 7, 1 violated/);
});

it('ends with what the runs did together', async () => {
  expect((await run({ summary: () => '7 cuts' })).text).toMatch(/0 violated, .* s, 7 cuts$/);
});

it('a run that throws has violated something', async () => {
  const { exitCode, text } = await run({ run: () => Promise.reject(new Error('broken')) }, 1);

  expect({ exitCode, text }).toEqual({
    exitCode: 1,
    text: expect.stringContaining('it threw Error: broken') as string,
  });
});

it('a run that does not end has violated something', async () => {
  const { exitCode, text } = await run({ run: () => new Promise(() => undefined), runLimitMs: 1 }, 1);

  expect({ exitCode, text }).toEqual({
    exitCode: 1,
    text: expect.stringContaining('it did not end within 1 ms') as string,
  });
});

it('an error that nobody handles counts for the run in which it came', async () => {
  const leave = async (): Promise<readonly string[]> => {
    // As node would: a true one would end the process of this test.
    process.emit('uncaughtException', new Error('left behind'));
    return [];
  };

  const others = process.listeners('uncaughtException');
  for (const other of others) process.off('uncaughtException', other);
  const { exitCode, text } = await run({ run: leave }, 1);
  for (const other of others) process.on('uncaughtException', other);

  expect({ exitCode, text }).toEqual({
    exitCode: 1,
    text: expect.stringContaining('an error that nobody handled: Error: left behind') as string,
  });
});

it('ends after ten violated runs', async () => {
  const { text } = await run({ run: async () => ['broken'] }, 1_000, 0);

  expect(text).toMatch(/c: 10 runs, seeds 0 to 9, 10 violated/);
});

it('gives 2 and the reason where it cannot run, and tears down', async () => {
  const steps: string[] = [];

  const { exitCode, text } = await run({
    setUp: async () => 'no broker',
    run: async () => (steps.push('run'), []),
    tearDown: async () => void steps.push('tear down'),
  });

  expect({ exitCode, text, steps }).toEqual({ exitCode: 2, text: 'c cannot run: no broker', steps: ['tear down'] });
});

it('a run lasts the minutes that are asked for, else those of the campaign', async () => {
  const asked: number[] = [];
  const campaign: Campaign = {
    name: 'c',
    says: 'is tested',
    defaultRuns: 1,
    defaultMinutes: 30,
    run: async (_seed, minutes) => (asked.push(minutes), ['it grew']),
  };
  const lines: string[] = [];
  const request = { runs: 1, seed: 1, progress: NO_PROGRESS, report: (line: string) => lines.push(line) };
  await runCampaign(campaign, request);
  await runCampaign(campaign, { ...request, minutes: 3 });

  expect(asked).toEqual([30, 3]);
  expect(lines).toContain('  replay: npm run campaign -- c --runs 1 --seed 1 --minutes 3');
});
