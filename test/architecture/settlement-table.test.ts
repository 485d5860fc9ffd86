// docs/settlement.md against the code: each row of its matrix is observed in a scenario, never only derived.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { HandlerOptions, Outcome } from '../../src/index.js';
import {
  defer,
  defineHandler,
  dependencyDown,
  fatal,
  fixedBackoff,
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

const OUTCOMES: Readonly<Record<string, () => Outcome>> = {
  'success()': () => success(),
  'success(message)': () => success(topic('out').message(1)),
  'skip(reason)': () => skip('no'),
  'retry()': () => retry(),
  'retry() on the last delivery': () => retry(),
  'retryAfter(ms)': () => retryAfter(30),
  'defer(ms)': () => defer(30),
  'poison(reason)': () => poison('bad'),
  'dependencyDown(name)': () => dependencyDown('db', { retryAfterMs: 30 }),
  'fatal(reason)': () => fatal('stop'),
};

const TYPES: Readonly<Record<string, HandlerOptions>> = {
  Exclusive: { type: 'exclusive' },
  Failover: { type: 'failover' },
  Shared: { type: 'shared' },
  Key_Shared: { type: 'key-shared' },
  'Key_Shared, ordering: key': { type: 'key-shared', ordering: 'key' },
};

interface Observed {
  readonly runs: number;
  readonly siblingRuns: number;
  readonly askedBack: boolean;
  readonly acknowledged: boolean;
  readonly published: number;
  readonly deadLetters: number;
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
  const handler = defineHandler({
    name: 'h',
    source: topic('t'),
    subscription: 's',
    ...TYPES[type],
    redelivery: { maxDeliveries: outcome.endsWith('last delivery') ? 1 : 5, backoff: fixedBackoff(30) },
    handle: ({ payload }) => {
      if (payload === 'sibling') {
        siblingRuns++;
        return success();
      }
      return runs++ === 0 ? OUTCOMES[outcome]!() : success();
    },
  });
  await world.start({ handlers: [handler], transport: faulty });
  if (batch) await world.publishBatch('t', ['message', 'sibling']);
  else await world.publish('t', 'message');
  await world.clock.advanceBy(40_000);
  const deadLetters = (await world.deadLetters('t', 's')).length;
  const published = (await world.read('out')).length;
  const acknowledged = world.backlog('t', 's') === 0;
  await world.end();
  return { runs, siblingRuns, askedBack: calls.includes('redeliver'), acknowledged, published, deadLetters, calls };
}

function happens(seen: Observed): string {
  if (!seen.acknowledged) return 'left unsettled, back at the broker';
  if (seen.deadLetters > 0) return 'dead letter published, then acknowledged';
  if (seen.runs > 1) return seen.askedBack ? 'its id is held, then asked back' : 'kept, run again in place';
  return seen.published > 0 ? 'message published, then acknowledged' : 'acknowledged';
}

/** What the first failing call of each kind changes, as words. */
async function whenCallsFail(outcome: string, type: string, batch: boolean): Promise<string> {
  const whole = await observe(outcome, type, batch);
  const failing: string[] = [];
  for (const call of ['publish', 'acknowledge', 'redeliver'] as const) {
    const at = whole.calls.lastIndexOf(call) + 1;
    if (at === 0) continue;
    const seen = await observe(outcome, type, batch, at);
    expect(seen.siblingRuns, `${outcome} on ${type}: siblings`).toBe(whole.siblingRuns);
    expect(seen.deadLetters, `${outcome} on ${type}: dead letters`).toBe(whole.deadLetters);
    const same =
      seen.acknowledged === whole.acknowledged && seen.runs === whole.runs && seen.published >= whole.published;
    failing.push(same ? `${call} repeated` : `${call}: ${happens(seen)}`);
  }
  return failing.length === 0 ? 'no call is made' : failing.join(', ');
}

async function matrix(): Promise<string[]> {
  const rows: string[] = [];
  for (const outcome of Object.keys(OUTCOMES)) {
    for (const type of Object.keys(TYPES)) {
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
      rows.push(`| \`${outcome}\` | ${type} | ${single} | ${batch === single ? 'the same' : batch} | ${fails} |`);
    }
  }
  return rows;
}

describe('docs/settlement.md', () => {
  it('holds the matrix that is observed', { timeout: 60_000 }, async () => {
    const written = readFileSync(new URL('../../docs/settlement.md', import.meta.url), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('| `') && line.split('|').length === 7);
    const rows = await matrix();
    expect(written).toEqual(rows);
  });
});
