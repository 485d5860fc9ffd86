// Random programs for the transaction model, equal for equal seeds.
import type { SubscriptionType } from '../../../src/core/subscription-spec.js';
import { SUBSCRIPTION_TYPES } from '../../../src/core/subscription-spec.js';
import { scattered } from '../seeded.js';
import { NOTICES } from './program.js';
import type { Act, Program, Setting, Step } from './program.js';

interface Chances {
  /** In [0, 1). */
  readonly next: () => number;
  /** A whole number, both ends included. */
  readonly whole: (least: number, most: number) => number;
  readonly oneOf: <T>(choices: readonly T[]) => T;
}

export function programOf(seed: number): Program {
  const next = scattered(seed);
  const whole = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  const chances: Chances = { next, whole, oneOf: (choices) => choices[whole(0, choices.length - 1)]! };
  const setting = settingOf(seed, chances);
  const kinds = [...USUAL_KINDS, ...(next() < 0.6 ? DISTURBING_KINDS : [])];
  const steps: Step[] = [];
  for (let left = whole(10, 50); left > 0; left--) {
    const act = MAKERS[chances.oneOf(kinds)](chances);
    steps.push({ ...act, ticks: next() < 0.5 ? undefined : chances.oneOf([0, 1, 3, 8, 20, 60]) });
  }
  return { setting, steps };
}

function settingOf(seed: number, { next, oneOf, whole }: Chances): Setting {
  const types = (): SubscriptionType[] => Array.from({ length: whole(1, 2) }, () => oneOf(SUBSCRIPTION_TYPES));
  return {
    seed,
    topics: Array.from({ length: whole(1, 3) }, types),
    notices: oneOf(NOTICES),
    latency: oneOf([0, 0, 2, 10, 40]),
    maxLedgerEntries: oneOf([2, 3, 10_000]),
    hasSegment: next() < 0.6,
  };
}

const USUAL_KINDS: readonly Act['do'][] = [
  ...Array<'begin'>(4).fill('begin'),
  ...Array<'publish'>(9).fill('publish'),
  ...Array<'acknowledge'>(12).fill('acknowledge'),
  ...Array<'commit'>(5).fill('commit'),
  ...Array<'abort'>(2).fill('abort'),
  ...['redeliver', 'redeliver', 'join', 'leave', 'unload', 'restart', 'pass', 'pass'].map((kind) => kind as 'restart'),
];

const DISTURBING_KINDS: readonly Act['do'][] = ['crash', 'crash', 'crash', 'fault', 'fault', 'close'];

const anyAt = ({ whole }: Chances): number => whole(0, 11);

const placed =
  <Kind extends string>(kind: Kind) =>
  (chances: Chances) => ({ do: kind, at: anyAt(chances) });

const ended =
  <Kind extends string>(kind: Kind) =>
  (chances: Chances) => ({ do: kind, at: anyAt(chances), rude: chances.next() < 0.2 });

const disturbed =
  <Kind extends string>(kind: Kind) =>
  ({ next, whole, oneOf }: Chances) => ({
    do: kind,
    call: oneOf([whole(1, 4), whole(1, 40)]),
    isAfter: next() < 0.5,
  });

const MAKERS: Readonly<Record<Act['do'], (chances: Chances) => Act>> = {
  begin: ({ oneOf }) => ({ do: 'begin', timeoutMs: oneOf([1_000, 10_000, 30_000]) }),
  publish: (chances) => ({
    do: 'publish',
    at: anyAt(chances),
    transaction: transactionOf(chances),
    batch: chances.next() < 0.2 ? chances.whole(2, 3) : 0,
  }),
  acknowledge: (chances) => ({
    do: 'acknowledge',
    at: anyAt(chances),
    consumer: anyAt(chances),
    transaction: transactionOf(chances),
    isCumulative: chances.next() < 0.35,
    isAgain: chances.next() < 0.25,
  }),
  commit: ended('commit'),
  abort: ended('abort'),
  redeliver: (chances) => ({ do: 'redeliver', at: anyAt(chances), consumer: anyAt(chances) }),
  leave: (chances) => ({ do: 'leave', consumer: anyAt(chances) }),
  join: placed('join'),
  unload: placed('unload'),
  restart: placed('restart'),
  close: placed('close'),
  pass: ({ oneOf, whole }) => ({ do: 'pass', ms: oneOf([0, whole(1, 2_000), whole(2_000, 90_000)]) }),
  crash: disturbed('crash'),
  fault: disturbed('fault'),
};

function transactionOf({ next, whole }: Chances): number | undefined {
  return next() < 0.3 ? undefined : whole(0, 5);
}
