// docs/settlement.md against the code: each row of its matrix is observed in a scenario, never only derived.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { HandlerOptions, Outcome, SubscriptionHealth } from '../../src/index.js';
import {
  defer,
  defineHandler,
  dependencyDown,
  fatal,
  fixedBackoff,
  hours,
  poison,
  retry,
  retryAfter,
  skip,
  success,
  topic,
} from '../../src/index.js';
import { embedded } from '../../src/embedded.js';
import type { CountedCall } from '../../src/testing.js';
import { FaultyTransport } from '../../src/testing.js';
import { World } from '../support/runtime-world.js';

interface Ending {
  /** What a handler says to the message the first time. */
  readonly says: () => Outcome;
  readonly options?: HandlerOptions;
  /** The subscription types it is there for; all where nothing is said. */
  readonly on?: readonly string[];
}

const LONG_MS = hours(1);
const IN_ORDER = 'Key_Shared, ordering: key';
/** As on the brokers of today. */
const IN_ORDER_HERE = 'Key_Shared, ordering: key, a broker without PIP-493';
const LETTERS = { options: { retryTopic: true }, on: ['Shared', 'Key_Shared'] } as const;

/** By the words of the matrix's first column. */
const ENDINGS: Readonly<Record<string, Ending>> = {
  '`success()`': { says: () => success() },
  '`success(message)`': { says: () => success(topic('out').message(1)) },
  '`skip(reason)`': { says: () => skip('no') },
  '`retry()`': { says: () => retry() },
  '`retry()` on the last delivery': { says: () => retry(), options: { redelivery: { maxDeliveries: 1 } } },
  '`retryAfter(ms)`': { says: () => retryAfter(30) },
  '`retryAfter(an hour)`, `retryTopic`': { says: () => retryAfter(LONG_MS), ...LETTERS },
  '`defer(ms)`': { says: () => defer(30) },
  '`defer(an hour)`, `retryTopic`': { says: () => defer(LONG_MS), ...LETTERS },
  '`poison(reason)`': { says: () => poison('bad') },
  "`poison(reason)`, `deadLetter: 'skip'`": { says: () => poison('bad'), options: { deadLetter: 'skip' } },
  "`poison(reason)`, `deadLetter: 'block'`": {
    says: () => poison('bad'),
    options: { deadLetter: 'block' },
    on: ['Exclusive', 'Failover', 'Shared', 'Key_Shared'],
  },
  "`poison(reason)`, `onDeadLetter: 'block-key'`": {
    says: () => poison('bad'),
    options: { onDeadLetter: 'block-key' },
    on: [IN_ORDER, IN_ORDER_HERE],
  },
  '`dependencyDown(name)`': { says: () => dependencyDown('db', { retryAfterMs: 30 }) },
  '`fatal(reason)`': { says: () => fatal('stop') },
};

const TYPES: Readonly<Record<string, HandlerOptions>> = {
  Exclusive: { type: 'exclusive' },
  Failover: { type: 'failover' },
  Shared: { type: 'shared' },
  Key_Shared: { type: 'key-shared' },
  [IN_ORDER]: { type: 'key-shared', ordering: 'key' },
  [IN_ORDER_HERE]: { type: 'key-shared', ordering: 'key', orderedNegativeAck: 'disabled' },
};

interface Observed {
  readonly runs: number;
  readonly siblingRuns: number;
  readonly askedBack: boolean;
  readonly acknowledged: boolean;
  readonly published: number;
  readonly deadLetters: number;
  readonly retryLetters: number;
  readonly givenUpByChoice: boolean;
  /** What health says of the subscription at the end. */
  readonly state: SubscriptionHealth['state'] | undefined;
  readonly calls: readonly CountedCall[];
}

/** One message that ends with the outcome on its first run and succeeds afterwards; in a batch, with a sibling that succeeds. */
async function observe(outcome: string, type: string, batch: boolean, failAt = 0): Promise<Observed> {
  const world = new World();
  const calls: CountedCall[] = [];
  const inner = embedded({ broker: world.broker });
  const faulty = new FaultyTransport(inner, {
    at: failAt,
    fault: 'throws',
    clock: world.clock,
    onCall: (call) => void calls.push(call),
  });
  let runs = 0;
  let siblingRuns = 0;
  const { says, options = {} } = endingOf(outcome);
  const handler = defineHandler({
    name: 'h',
    source: topic('t'),
    subscription: 's',
    ...TYPES[type],
    ...options,
    redelivery: { maxDeliveries: 5, backoff: fixedBackoff(30), ...options.redelivery },
    handle: ({ payload }) => {
      if (payload === 'sibling') {
        siblingRuns++;
        return success();
      }
      return runs++ === 0 ? says() : success();
    },
  });
  const runtime = await world.start({ handlers: [handler], transport: faulty });
  if (batch) await world.publishBatch('t', ['message', 'sibling'], { key: 'k' });
  else await world.publish('t', 'message', { key: 'k' });
  const { retryTopic = false } = options;
  await world.clock.advanceBy(40_000 + (retryTopic === false ? 0 : LONG_MS));
  const state = runtime.health()[0]?.state;
  const deadLetters = (await world.deadLetters('t', 's')).length;
  const published = (await world.read('out')).length;
  const retryLetters = retryTopic === false ? 0 : (await world.read('t-s-RETRY')).length;
  const acknowledged = world.backlog('t', 's') + (retryTopic === false ? 0 : world.backlog('t-s-RETRY', 's')) === 0;
  const givenUpByChoice = world.reports.some(({ settlement }) => settlement === 'skip');
  await world.end();
  const ends = { acknowledged, published, deadLetters, retryLetters, givenUpByChoice, state };
  return { runs, siblingRuns, askedBack: calls.includes('redeliver'), ...ends, calls };
}

function endingOf(outcome: string): Ending {
  const ending = ENDINGS[outcome];
  if (ending === undefined) throw new Error(`no ending is called ${outcome}`);
  return ending;
}

function happens(seen: Observed): string {
  if (!seen.acknowledged)
    return seen.state === 'degraded'
      ? 'kept unacknowledged, health says `degraded`'
      : 'left unsettled, back at the broker';
  if (seen.givenUpByChoice) return 'given up: acknowledged, no dead letter';
  if (seen.deadLetters > 0) return 'dead letter published, then acknowledged';
  if (seen.retryLetters > 0) return 'retry letter published, then acknowledged; the letter runs when due';
  if (seen.runs > 1) return seen.askedBack ? 'its id is held, then asked back' : 'kept, run again in place';
  return seen.published > 0 ? 'message published, then acknowledged' : 'acknowledged';
}

/** What it changes when one call of each kind fails, whichever it is, as words. */
async function whenCallsFail(outcome: string, type: string, batch: boolean): Promise<string> {
  const whole = await observe(outcome, type, batch);
  const failing = new Set<string>();
  for (const call of ['publish', 'acknowledge', 'redeliver'] as const) {
    for (const [i, made] of whole.calls.entries()) {
      if (made !== call) continue;
      const seen = await observe(outcome, type, batch, i + 1);
      expect(seen.siblingRuns, `${outcome} on ${type}: siblings`).toBe(whole.siblingRuns);
      expect(seen.deadLetters, `${outcome} on ${type}: dead letters`).toBe(whole.deadLetters);
      expect(seen.retryLetters, `${outcome} on ${type}: retry letters`).toBe(whole.retryLetters);
      const same =
        seen.acknowledged === whole.acknowledged && seen.runs === whole.runs && seen.published >= whole.published;
      failing.add(same ? `${call} repeated` : `${call}: ${happens(seen)}`);
    }
  }
  return failing.size === 0 ? 'no call is made' : [...failing].join(', ');
}

async function matrix(): Promise<string[]> {
  const rows: string[] = [];
  for (const [outcome, { on = Object.keys(TYPES) }] of Object.entries(ENDINGS)) {
    for (const type of on) {
      const single = happens(await observe(outcome, type, false));
      const inBatch = await observe(outcome, type, true);
      // Where the runtime stops, a sibling that had not started goes back too.
      const siblingRuns = inBatch.acknowledged ? 1 : Math.min(inBatch.siblingRuns, 1);
      expect(inBatch.siblingRuns, `${outcome} on ${type}: the sibling runs once`).toBe(siblingRuns);
      const batch = inBatch.askedBack
        ? 'its entry is asked back whole; the finished sibling does not run again'
        : happens(inBatch);
      const fails = await whenCallsFail(outcome, type, false);
      expect(await whenCallsFail(outcome, type, true)).toContain(
        fails === 'no call is made' ? '' : fails.split(',')[0],
      );
      rows.push(`| ${outcome} | ${type} | ${single} | ${batch === single ? 'the same' : batch} | ${fails} |`);
    }
  }
  return rows;
}

describe('docs/settlement.md', () => {
  it('holds the matrix that is observed', { timeout: 120_000 }, async () => {
    const written = readFileSync(new URL('../../docs/settlement.md', import.meta.url), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('| `') && line.split('|').length === 7);
    const rows = await matrix();
    expect(written).toEqual(rows);
  });
});
