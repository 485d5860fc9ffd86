// `transactional`: what a success carries and the acknowledgement are one transaction. The transport is scripted: each test
// says which call goes wrong, and looks at what was asked of the broker, in order.
import { beforeEach, describe, expect, it } from 'vitest';
import type { HandlerOptions, Outcome } from '../../../src/index.js';
import { defineHandler, fixedBackoff, poison, retry, seconds, skip, success, topic } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { World } from '../../support/runtime-world.js';
import { ScriptedTransactions, answerLost, fails, hangs, notSent } from '../../support/scripted-transactions.js';

const jobs = topic('jobs');
const out = topic('out');
let world: World;
let scripted: ScriptedTransactions;
beforeEach(() => {
  world = new World();
  scripted = new ScriptedTransactions(embedded({ broker: world.broker }));
});

const answers = (): Outcome => success(out.message('a'), out.message('b'));

/** One message for a handler that gives these outcomes, one after the other. Gives the attempts that it ran. */
async function run(outcomes: readonly (() => Outcome)[], options: HandlerOptions = {}, ms = seconds(200)) {
  const attempts: number[] = [];
  const handler = defineHandler({
    ...{ name: 'h', source: jobs, subscription: 's', publishes: [out], transactional: true },
    redelivery: { maxDeliveries: 2, backoff: fixedBackoff(20) },
    ...options,
    handle: ({ attempt }) => {
      attempts.push(attempt);
      return outcomes[Math.min(attempts.length, outcomes.length) - 1]!();
    },
  });
  const runtime = await world.start({ handlers: [handler], transport: scripted.transport });
  await world.publish('jobs', 1, { key: 'k' });
  await world.clock.advanceBy(ms);
  const published = (await world.read('out')).length;
  const end = { attempts, published, backlog: world.backlog('jobs', 's'), open: scripted.open };
  await world.drain(runtime, 0);
  return end;
}

const DONE = { published: 2, backlog: 0, open: [] };
const WHOLE = (t: string) => [
  ...[`${t} begin`, `${t} publish out`, `${t} publish out`],
  ...[`${t} acknowledge 1:0:-1`, `${t} commit`],
];

describe('a success with messages', () => {
  it('is one transaction of 10 seconds: begin, publish, acknowledge this delivery, commit', async () => {
    expect(await run([answers])).toEqual({ ...DONE, attempts: [1] });
    expect(scripted.asked).toEqual(WHOLE('t1'));
    expect(scripted.timeoutMs).toBe(10_000);
    expect(world.reports).toMatchObject([{ outcome: 'success', settlement: 'acknowledge' }]);
  });

  it('takes the time that `timeoutMs` gives', async () => {
    await run([answers], { transactional: { timeoutMs: 3_000 } });
    expect(scripted.timeoutMs).toBe(3_000);
  });
});

describe('other outcomes open no transaction', () => {
  it.each<readonly [string, () => Outcome, readonly string[]]>([
    ['a success without messages', () => success(), ['acknowledge 1:0:-1']],
    ['skip', () => skip('no'), ['acknowledge 1:0:-1']],
    ['a dead letter', () => poison('bad'), ['publish jobs-s-DLQ', 'acknowledge 1:0:-1']],
  ])('%s', async (_, outcome, asked) => {
    await run([outcome]);
    expect(scripted.asked).toEqual(asked);
  });
});

describe('a call that fails before the acknowledgement was sent', () => {
  it.each(['begin', 'publish'] as const)(
    '%s: the transaction is aborted and the same outcome goes into another one, without a run',
    async (step) => {
      scripted.script[step] = [fails()];
      expect(await run([answers])).toEqual({ ...DONE, attempts: [1] });
      const aborted = step === 'begin' ? ['t1 begin'] : ['t1 begin', 't1 publish out', 't1 publish out', 't1 abort'];
      expect(scripted.asked).toEqual([...aborted, ...WHOLE('t2')]);
      expect(world.telemetry.runs).toHaveLength(1);
    },
  );

  it('a transaction whose time is over while it publishes is one of them: another one is begun', async () => {
    scripted.script.publish = [fails('TRANSACTION_ENDED', false)];
    scripted.script.abort = [fails('TRANSACTION_ENDED', false)];
    expect(await run([answers])).toMatchObject({ attempts: [1], published: 2, backlog: 0 });
    expect(scripted.asked.slice(-5)).toEqual(WHOLE('t2'));
    expect(await world.deadLetters('jobs', 's')).toEqual([]);
  });

  it('a message that is refused for good is a failed run: aborted, then what the policy says', async () => {
    scripted.script.publish = [fails('MESSAGE_TOO_LARGE', false), undefined, fails('MESSAGE_TOO_LARGE', false)];
    expect(await run([answers])).toEqual({ attempts: [1, 2], published: 0, backlog: 0, open: [] });
    expect(scripted.asked.filter((asked) => asked.endsWith('abort'))).toEqual(['t1 abort', 't2 abort']);
    expect(scripted.asked.slice(-2)).toEqual(['publish jobs-s-DLQ', 'acknowledge 1:0:-1']);
    const [letter] = await world.deadLetters('jobs', 's');
    expect(letter?.properties['pulsework-cause']).toBe('publish-refused');
  });

  it('one that begins after its time limit is aborted: nobody would, and readers wait for it', async () => {
    scripted.script.begin = [(begin) => new Promise((resolve) => world.clock.setTimer(40_000, () => resolve(begin())))];
    expect(await run([answers])).toEqual({ ...DONE, attempts: [1] });
    expect(scripted.asked.filter((asked) => asked.startsWith('t1'))).toEqual(['t1 begin', 't1 abort']);
  });
});

const SINGLE = ['exclusive', 'failover'] as const;
const MANY = ['shared', 'key-shared'] as const;

describe('an acknowledgement that failed, or may have', () => {
  it.each(MANY)('on %s: aborted, and the delivery comes again by that, as the same attempt', async (type) => {
    scripted.script.acknowledge = [answerLost()];
    expect(await run([answers], { type })).toEqual({ ...DONE, attempts: [1, 1] });
    const first = ['t1 begin', 't1 publish out', 't1 publish out', 't1 acknowledge 1:0:-1', 't1 abort'];
    expect(scripted.asked).toEqual([...first, ...WHOLE('t2')]);
  });

  it.each(SINGLE)('on %s the broker is asked for it once (T-17)', async (type) => {
    scripted.script.acknowledge = [answerLost()];
    expect(await run([answers], { type })).toEqual({ ...DONE, attempts: [1, 1] });
    expect(scripted.asked.slice(3)).toEqual(['t1 acknowledge 1:0:-1', 't1 abort', 'redeliver 1:0:-1', ...WHOLE('t2')]);
  });

  it.each([...SINGLE, ...MANY])(
    'on %s one that was refused before it was sent costs another transaction with the same outcome, and no run',
    async (type) => {
      scripted.script.acknowledge = [notSent(), notSent('TRANSACTION_ENDED', false)];
      expect(await run([answers], { type }, seconds(5))).toEqual({ ...DONE, attempts: [1] });
      const refused = (t: string) => [...WHOLE(t).slice(0, 4), `${t} abort`];
      expect(scripted.asked).toEqual([...refused('t1'), ...refused('t2'), ...WHOLE('t3')]);
      expect(world.telemetry.runs).toMatchObject([{ end: 'settled', failedCalls: ['acknowledging', 'acknowledging'] }]);
    },
  );

  it('one that was refused before it was sent, and cannot be aborted, costs the same: nobody asks to commit that', async () => {
    scripted.script.acknowledge = [notSent()];
    scripted.script.abort = [fails()];
    expect(await run([answers], {}, seconds(5))).toMatchObject({
      attempts: [1],
      published: 2,
      backlog: 0,
      open: ['t1'],
    });
    expect(scripted.asked).toEqual([...WHOLE('t1').slice(0, 4), 't1 abort', ...WHOLE('t2')]);
  });

  it('one that may have been sent, and was not, brings nothing back: it is asked for when no copy has come', async () => {
    scripted.script.acknowledge = [fails()];
    expect(await run([answers])).toEqual({ ...DONE, attempts: [1, 1] });
    expect(scripted.asked.slice(3)).toEqual(['t1 acknowledge 1:0:-1', 't1 abort', 'redeliver 1:0:-1', ...WHOLE('t2')]);
  });

  it('a conflict aborts it, and nothing is dead-lettered or published twice', async () => {
    scripted.script.acknowledge = [fails('TRANSACTION_CONFLICT', false)];
    expect(await run([answers])).toEqual({ ...DONE, attempts: [1, 1] });
    expect(await world.deadLetters('jobs', 's')).toEqual([]);
  });

  it('an abort that fails is repeated until it is known', async () => {
    scripted.script.acknowledge = [answerLost()];
    scripted.script.abort = [fails(), hangs];
    expect(await run([answers])).toEqual({ ...DONE, attempts: [1, 1] });
    expect(scripted.asked.filter((asked) => asked === 't1 abort')).toHaveLength(3);
  });
});

describe('a commit', () => {
  it.each([
    ['fails', fails()],
    ['gives no answer', hangs],
  ])('that %s is repeated, and nothing else is', async (_, play) => {
    scripted.script.commit = [play, play];
    expect(await run([answers])).toEqual({ ...DONE, attempts: [1] });
    expect(scripted.asked).toEqual([...WHOLE('t1'), 't1 commit', 't1 commit']);
  });

  it('whose answer is lost: the coordinator knows it no more, so its end is unknown; only `redeliver` is sent', async () => {
    scripted.script.commit = [answerLost()];
    expect(await run([answers])).toEqual({ ...DONE, attempts: [1] });
    const [first, ...then] = scripted.asked.slice(5);
    expect([first, then.every((asked) => asked === 'redeliver 1:0:-1')]).toEqual(['t1 commit', true]);
    expect(world.telemetry.runs).toMatchObject([{ end: 'dropped' }]);
  });

  it.each([...SINGLE, ...MANY])(
    'with TRANSACTION_OUTCOME_UNKNOWN on %s: what was committed does not come again',
    async (type) => {
      scripted.script.commit = [answerLost('TRANSACTION_OUTCOME_UNKNOWN', false)];
      expect(await run([answers], { type })).toEqual({ ...DONE, attempts: [1] });
      expect(scripted.asked[5]).toBe('redeliver 1:0:-1');
      expect(scripted.asked.filter((asked) => asked.includes('publish'))).toHaveLength(2);
    },
  );

  it.each([...SINGLE, ...MANY])(
    'with TRANSACTION_OUTCOME_UNKNOWN on %s: what was aborted comes again',
    async (type) => {
      scripted.script.commit = [
        async () => {
          scripted.abortByBroker();
          throw await fails(
            'TRANSACTION_OUTCOME_UNKNOWN',
            false,
          )(async () => undefined).catch((error: unknown) => error);
        },
      ];
      expect(await run([answers], { type })).toEqual({ ...DONE, attempts: [1, 1] });
      expect(scripted.asked.slice(-5)).toEqual(WHOLE('t2'));
    },
  );

  it.each(['TRANSACTION_ENDED', 'TRANSACTION_ABORTED'] as const)(
    'that is %s at once: nothing of it counts, and it comes again as the same attempt',
    async (code) => {
      scripted.script.commit = [
        async (commit) => {
          scripted.abortByBroker();
          await fails(code, false)(commit);
        },
      ];
      expect(await run([answers])).toEqual({ ...DONE, attempts: [1, 1] });
      expect(scripted.asked).not.toContain('redeliver 1:0:-1');
    },
  );

  it('that was aborted again and again spends no attempt', async () => {
    const aborted = fails('TRANSACTION_ABORTED', false);
    scripted.script.commit = Array.from({ length: 4 }, () => async (commit) => {
      scripted.abortByBroker();
      await aborted(commit);
    });
    expect(await run([answers, answers, answers, () => retry(), answers])).toMatchObject({
      attempts: [1, 1, 1, 1, 2, 2],
      published: 2,
      backlog: 0,
    });
    expect(await world.deadLetters('jobs', 's')).toEqual([]);
  });
});
