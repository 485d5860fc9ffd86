// Every hook of several plugins, in the order that docs/plugins.md states, when things fail.
import { beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome, Plugin, Runtime } from '../../../src/index.js';
import { defineHandler, fatal, fixedBackoff, poison, retry, seconds, success, topic } from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

const orders = topic('orders');
const receipts = topic('receipts');

let world: World;
let trace: string[];
beforeEach(() => {
  world = new World();
  trace = [];
});

/** Writes down each of its hooks; those of `own` come in place of its own. */
function traced(name: string, own: Partial<Plugin> = {}): Plugin {
  const note = (what: string): void => void trace.push(`${name} ${what}`);
  const around = async <T>(what: string, next: () => T | Promise<T>): Promise<T> => {
    note(`${what} begins`);
    try {
      const result = await next();
      note(`${what} ends`);
      return result;
    } catch (error) {
      note(`${what} fails: ${(error as Error).message}`);
      throw error;
    }
  };
  return {
    name,
    aroundHandler: (_, next) => around('run', next),
    aroundPublish: (request, next) => around('publish', () => next(request)),
    onStart: () => note('start'),
    onSettled: ({ outcome }) => note(`settled ${outcome}`),
    onDeadLettered: ({ cause }) => note(`dead-lettered ${cause ?? ''}`),
    onDrain: () => note('drain'),
    onClose: () => note('close'),
    ...own,
  };
}

function start(
  handle: (delivery: Delivery) => Outcome | Promise<Outcome>,
  plugins: readonly Plugin[],
  options: HandlerOptions = {},
): Promise<Runtime> {
  const redelivery = { backoff: fixedBackoff(seconds(1)), maxDeliveries: 2 };
  const handler = defineHandler({ name: 'h', source: orders, subscription: 's', redelivery, ...options, handle });
  return world.start({ handlers: [handler], plugins });
}

/** The trace of one message, without start and end. */
async function traceOf(
  handle: (delivery: Delivery) => Outcome | Promise<Outcome>,
  plugins: readonly Plugin[],
  forMs = 0,
): Promise<readonly string[]> {
  await start(handle, plugins);
  trace.length = 0;
  await world.publish('orders', 1);
  await world.clock.advanceBy(forMs);
  return trace;
}

const unended = (): readonly unknown[] =>
  world.log.filter(({ message }) => message === 'plugin hook has not ended').map(({ fields }) => fields);

const failing = (what: string) => (): never => {
  throw new Error(what);
};

describe('a start', () => {
  it('that fails midway closes those that had started, in reverse, and asks no others', async () => {
    const plugins = [
      traced('a'),
      traced('b'),
      traced('c', { onStart: () => (trace.push('c start'), Promise.reject(new Error('no licence'))) }),
      traced('d'),
    ];
    await expect(start(() => success(), plugins)).rejects.toThrow('no licence');
    expect(trace).toEqual(['a start', 'b start', 'c start', 'b close', 'a close']);
  });

  it('waits for each plugin before it asks the next, and for all before the first delivery', async () => {
    const slow = traced('a', {
      onStart: async () => {
        await new Promise<void>((resolve) => world.clock.setTimer(1_000, resolve));
        trace.push('a start');
      },
    });
    await world.publish('orders', 1);
    const starting = start(() => (trace.push('handler'), success()), [slow, traced('b')]);
    await world.clock.advanceBy(999);
    expect(trace).toEqual([]);
    await world.clock.advanceBy(1);
    await starting;
    expect(trace.slice(0, 5)).toEqual(['a start', 'b start', 'a run begins', 'b run begins', 'handler']);
  });

  it('that waits for a plugin says for which one', async () => {
    let go: () => void = () => undefined;
    const waiting = traced('b', { onStart: () => new Promise((resolve) => (go = resolve)) });
    const starting = start(() => success(), [traced('a'), waiting]);
    await world.clock.advanceBy(seconds(10) - 1);
    expect(unended()).toEqual([]);
    await world.clock.advanceBy(1);
    expect(unended()).toEqual([{ plugin: 'b', hook: 'onStart' }]);
    go();
    expect((await starting).state).toBe('running');
  });

  it('gives each plugin the runtime: its clock, its health, and its end', async () => {
    const seen: unknown[] = [];
    const plugin: Plugin = {
      name: 'p',
      onStart: (runtime) =>
        void seen.push(
          runtime.clock,
          runtime.transport,
          runtime.health().map(({ handler, state }) => [handler, state]),
        ),
    };
    await start(() => success(), [plugin]);
    expect(seen).toEqual([world.clock, 'embedded', [['h', 'running']]]);
  });
});

describe('a run', () => {
  it('goes through the plugins from the outermost in, and back', async () => {
    expect(
      await traceOf(() => (trace.push('handler'), success(receipts.message(1))), [traced('a'), traced('b')]),
    ).toEqual([
      'a run begins',
      'b run begins',
      'handler',
      'b run ends',
      'a run ends',
      'a publish begins',
      'b publish begins',
      'b publish ends',
      'a publish ends',
      'a settled success',
      'b settled success',
    ]);
  });

  it('stands by `after`, whatever the list says', async () => {
    expect(await traceOf(() => success(), [traced('b', { after: ['a'] }), traced('a')])).toEqual([
      'a run begins',
      'b run begins',
      'b run ends',
      'a run ends',
      'a settled success',
      'b settled success',
    ]);
  });

  it('whose handler throws fails through every plugin, and tells observers what became of it', async () => {
    expect(await traceOf(failing('busy'), [traced('a'), traced('b')], seconds(1))).toEqual([
      'a run begins',
      'b run begins',
      'b run fails: busy',
      'a run fails: busy',
      'a settled retry',
      'b settled retry',
      'a run begins',
      'b run begins',
      'b run fails: busy',
      'a run fails: busy',
      'a settled retry',
      'b settled retry',
      'a dead-lettered redeliveries-exhausted',
      'b dead-lettered redeliveries-exhausted',
    ]);
  });

  it('that a plugin stops before the handler fails for those around it, and not for those inside', async () => {
    const plugins = [traced('a'), traced('b', { aroundHandler: failing('not today') }), traced('c')];
    expect(await traceOf(() => (trace.push('handler'), success()), plugins)).toEqual([
      'a run begins',
      'a run fails: not today',
      'a settled retry',
      'b settled retry',
      'c settled retry',
    ]);
  });

  it('whose plugin throws after the handler fails although the handler succeeded, and publishes nothing', async () => {
    const own: Partial<Plugin> = { aroundHandler: async (_, next) => (await next(), failing('too late')()) };
    expect(await traceOf(() => success(receipts.message(1)), [traced('a'), traced('b', own)])).toEqual([
      'a run begins',
      'a run fails: too late',
      'a settled retry',
      'b settled retry',
    ]);
    expect(await world.read('receipts')).toEqual([]);
  });

  it('whose publish a plugin refuses is a failed run, and its message stays', async () => {
    const plugins = [traced('a'), traced('b', { aroundPublish: failing('no publishing') })];
    expect(await traceOf(() => success(receipts.message(1)), plugins)).toEqual([
      'a run begins',
      'b run begins',
      'b run ends',
      'a run ends',
      'a publish begins',
      'a publish fails: no publishing',
      'a settled retry',
      'b settled retry',
    ]);
    expect(world.backlog('orders', 's')).toBe(1);
  });
});

describe('observers', () => {
  it('that throw or reject stop nobody after them, change nothing, and are named in the log', async () => {
    const bad = traced('bad', {
      onSettled: failing('x'),
      onDeadLettered: () => Promise.reject(new Error('y')) as never,
    });
    expect(await traceOf(() => poison('broken'), [bad, traced('good')])).toEqual([
      'bad run begins',
      'good run begins',
      'good run ends',
      'bad run ends',
      'good settled poison',
      'good dead-lettered poison',
    ]);
    expect(await world.deadLetters('orders', 's')).toHaveLength(1);
    const failures = world.log.filter(({ message }) => message === 'plugin hook failed').map(({ fields }) => fields);
    expect(failures).toMatchObject([
      { plugin: 'bad', hook: 'onSettled', error: new Error('x') },
      { plugin: 'bad', hook: 'onDeadLettered', error: new Error('y') },
    ]);
  });
});

describe('the end', () => {
  it('asks every plugin in order, waits for its runs, and closes in reverse, also when hooks fail', async () => {
    const bad = traced('b', {
      onDrain: () => (trace.push('b drain'), Promise.reject(new Error('x'))),
      onClose: () => (trace.push('b close'), failing('y')()),
    });
    const finish = (): Promise<Outcome> =>
      new Promise((resolve) => world.clock.setTimer(seconds(5), () => resolve(success())));
    const runtime = await start(finish, [traced('a'), bad, traced('c')]);
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    trace.length = 0;
    expect(await world.drain(runtime)).toEqual({ complete: true, stillRunning: [] });
    expect(trace).toEqual([
      'a drain',
      'b drain',
      'c drain',
      'c run ends',
      'b run ends',
      'a run ends',
      'a settled success',
      'b settled success',
      'c settled success',
      'c close',
      'b close',
      'a close',
    ]);
  });

  it('past its deadline tells the run to end through every plugin, settles nothing, and closes all', async () => {
    const untilTold = ({ signal }: Delivery): Promise<Outcome> =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('told to end'))));
    const hanging = traced('a', { onDrain: () => (trace.push('a drain'), new Promise(() => undefined)) });
    const runtime = await start(untilTold, [hanging, traced('b')]);
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    trace.length = 0;
    expect(await world.drain(runtime, seconds(2))).toMatchObject({ complete: false, stillRunning: [] });
    expect(trace).toEqual([
      'a drain',
      'b drain',
      'b run fails: told to end',
      'a run fails: told to end',
      'b close',
      'a close',
    ]);
    expect(world.backlog('orders', 's')).toBe(1);
  });

  it('names the plugin whose onDrain had not ended when the deadline had passed, and no other', async () => {
    const hanging = traced('a', { onDrain: () => new Promise(() => undefined) });
    const runtime = await start(() => success(), [hanging, traced('b')]);
    expect(await world.drain(runtime, seconds(2))).toEqual({ complete: false, stillRunning: [] });
    expect(unended()).toEqual([{ plugin: 'a', hook: 'onDrain' }]);
  });

  it('comes to every plugin in reverse, also where one hangs as it closes, within the time for all', async () => {
    const hanging = traced('b', { onClose: () => (trace.push('b close'), new Promise(() => undefined)) });
    const slow = traced('a', {
      onClose: async () => {
        await new Promise<void>((resolve) => world.clock.setTimer(seconds(5), resolve));
        trace.push('a closed');
      },
    });
    const handler = defineHandler({ name: 'h', source: orders, subscription: 's', handle: () => success() });
    const plugins = [slow, hanging, traced('c')];
    const runtime = await world.start({ handlers: [handler], plugins, callTimeoutMs: seconds(12) });
    trace.length = 0;
    const draining = runtime.drain();
    await world.clock.advanceBy(seconds(11));
    expect([trace, runtime.state]).toEqual([
      ['a drain', 'b drain', 'c drain', 'c close', 'b close', 'a closed'],
      'draining',
    ]);
    await world.clock.advanceBy(seconds(1));
    expect(await draining).toEqual({ complete: true, stillRunning: [] });
    expect(unended()).toEqual([{ plugin: 'b', hook: 'onClose' }]);
    expect(world.clock.pendingTimers).toEqual([]);
  });

  it('waits for a plugin to close before it asks the next', async () => {
    const slow = traced('b', {
      onClose: async () => {
        await new Promise<void>((resolve) => world.clock.setTimer(seconds(5), resolve));
        trace.push('b closed');
      },
    });
    const runtime = await start(() => success(), [traced('a'), slow]);
    trace.length = 0;
    await world.drain(runtime);
    expect(trace).toEqual(['a drain', 'b drain', 'b closed', 'a close']);
    expect(unended()).toEqual([]);
  });

  it('rejects publishes that a plugin still holds back', async () => {
    const holding: Plugin = { name: 'a', aroundPublish: () => new Promise(() => undefined) };
    const runtime = await start(() => success(), [holding]);
    const publishing = runtime.publisher(receipts).publish(1);
    await Promise.all([expect(publishing).rejects.toMatchObject({ code: 'ALREADY_CLOSED' }), world.drain(runtime)]);
    expect(await world.read('receipts')).toEqual([]);
  });

  it('tells hooks that still close when nobody waits any longer', async () => {
    const untilTold = traced('a', {
      onClose: (signal) =>
        new Promise((resolve) => {
          signal?.addEventListener('abort', () => {
            trace.push('a told');
            resolve();
          });
        }),
    });
    const runtime = await start(() => success(), [untilTold]);
    trace.length = 0;
    await world.drain(runtime);
    expect(trace).toEqual(['a drain', 'a told']);
  });

  it('that a plugin hurries on during a drain comes at once', async () => {
    world.endsEarly = true;
    let hurry: () => void = () => undefined;
    const impatient = traced('a', { onStart: (runtime) => void (hurry = () => void runtime.close()) });
    const runtime = await start(() => new Promise(() => undefined), [impatient]);
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    const draining = runtime.drain({ deadlineMs: seconds(600) });
    await world.clock.advanceBy(seconds(10));
    trace.length = 0;
    hurry();
    await world.clock.advanceBy(seconds(2));
    expect(await draining).toEqual({ complete: false, stillRunning: ['h'] });
    expect(trace).toEqual(['a close']);
  });

  it('by fatal drains and closes the plugins like any other', async () => {
    const runtime = await start(() => fatal('no licence'), [traced('a')]);
    trace.length = 0;
    await world.publish('orders', 1);
    await world.clock.advanceBy(seconds(1));
    await expect(runtime.closed).rejects.toMatchObject({ code: 'HANDLER_REQUESTED_STOP' });
    expect(trace).toEqual(['a run begins', 'a run ends', 'a settled fatal', 'a drain', 'a close']);
  });

  it('asks none of a runtime whose deliveries wait for another try', async () => {
    const runtime = await start(() => retry(), [traced('a')]);
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    trace.length = 0;
    await world.drain(runtime);
    expect(trace).toEqual(['a drain', 'a close']);
  });
});
