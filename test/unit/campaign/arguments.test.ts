// The command line of `npm run campaign`.
import { describe, expect, it } from 'vitest';
import { helpText, parseArguments } from '../../campaign/arguments.js';
import { replayCommand } from '../../campaign/campaign.js';

const KNOWN = ['wire-cuts', 'kills'];

it('runs the named campaign as often as it says itself, from seed 1 on', () => {
  expect(parseArguments(['kills'], KNOWN)).toEqual({
    kind: 'run',
    name: 'kills',
    runs: undefined,
    seed: 1,
    choices: {},
  });
});

it('takes the options on either side of the name', () => {
  expect(parseArguments(['--seed', '0', 'kills', '--runs', '3'], KNOWN)).toEqual({
    kind: 'run',
    name: 'kills',
    runs: 3,
    seed: 0,
    choices: {},
  });
});

it('gives help whatever else is asked', () => {
  expect(parseArguments(['nothing', '--help'], KNOWN)).toEqual({ kind: 'help' });
});

it('help names each campaign with what it says and how often it runs', () => {
  const text = helpText([{ name: 'wire-cuts', says: 'cuts wires', defaultRuns: 200 }]);

  expect(text).toContain('  wire-cuts  cuts wires (200 runs)\n');
});

it('refuses a name that it does not know, and lists those it knows', () => {
  expect(() => parseArguments(['wirecuts'], KNOWN)).toThrow(
    'unknown campaign "wirecuts"; campaigns are wire-cuts, kills;',
  );
});

it.each([
  [[], 'one campaign must be named, got 0'],
  [['kills', 'wire-cuts'], 'one campaign must be named, got 2'],
  [['kills', '--run', '3'], 'unknown option "--run"'],
  [['kills', '--runs'], '--runs needs a whole number of 1 or more, got null'],
  [['kills', '--runs', '0'], '--runs needs a whole number of 1 or more, got "0"'],
  [['kills', '--seed', '-1'], '--seed needs a whole number of 0 or more, got "-1"'],
  [['kills', '--seed', '1e3'], '--seed needs a whole number of 0 or more, got "1e3"'],
])('refuses %j', (args, problem) => {
  expect(() => parseArguments(args, KNOWN)).toThrow(problem);
});

it('tells all that is wrong at once', () => {
  expect(() => parseArguments(['--runs', 'many', '--quick'], KNOWN)).toThrow(
    /^--runs needs .*; unknown option "--quick"; one campaign must be named, got 0; campaigns are/,
  );
});

describe('--minutes', () => {
  const TIMED = ['kills'];

  it('is for campaigns that last as long as one says', () => {
    expect(parseArguments(['kills', '--minutes', '3'], KNOWN, TIMED)).toMatchObject({ name: 'kills', minutes: 3 });
    expect(parseArguments(['kills'], KNOWN, TIMED)).toMatchObject({ minutes: undefined });
  });

  it.each([
    [['wire-cuts', '--minutes', '3'], 'wire-cuts takes no --minutes, only kills does'],
    [['kills', '--minutes', '0'], '--minutes needs a whole number of 1 or more, got "0"'],
    [['kills', '--minutes', 'half'], '--minutes needs a whole number of 1 or more, got "half"'],
  ])('refuses %j', (args, problem) => {
    expect(() => parseArguments(args, KNOWN, TIMED)).toThrow(problem);
  });

  it('is in the help of those campaigns', () => {
    const campaign = { name: 'kills', says: 'kills', defaultRuns: 1, defaultMinutes: 30 };

    expect(helpText([campaign])).toContain('  kills  kills (1 of 30 minutes, or --minutes M)\n');
  });
});

describe('options of a campaign’s own', () => {
  const CHOICES = { kills: { store: ['sqlite', 'postgres'], broker: ['embedded', 'pulsar'] } };

  it('are the first of what they may be unless another one is chosen', () => {
    const parsed = parseArguments(['kills', '--store', 'postgres'], KNOWN, [], CHOICES);
    expect(parsed).toMatchObject({ choices: { store: 'postgres', broker: 'embedded' } });
    expect(parseArguments(['wire-cuts'], KNOWN, [], CHOICES)).toMatchObject({ choices: {} });
  });

  it.each([
    [['kills', '--store', 'oracle'], '--store must be one of sqlite, postgres, got "oracle"'],
    [['kills', '--store'], '--store must be one of sqlite, postgres, got ""'],
    [['wire-cuts', '--store', 'sqlite'], 'wire-cuts takes no --store'],
    [['kills', '--shop', 'sqlite'], 'unknown option "--shop"'],
  ])('refuses %j', (args, problem) => {
    expect(() => parseArguments(args, KNOWN, [], CHOICES)).toThrow(problem);
  });

  it('are named in the help and in the command that does a run again, where they are not the first', () => {
    const campaign = { name: 'kills', says: 'kills', defaultRuns: 2, choices: CHOICES.kills };
    expect(helpText([campaign])).toContain('kills (2 runs, --store sqlite|postgres, --broker embedded|pulsar)');
    expect(replayCommand(campaign, 7, undefined, { store: 'postgres', broker: 'embedded' })).toBe(
      'npm run campaign -- kills --runs 1 --seed 7 --store postgres',
    );
  });
});
