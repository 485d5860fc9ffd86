import { AsyncLocalStorage } from 'node:async_hooks';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Outcome } from '../../../src/index.js';
import { success } from '../../../src/core/outcome.js';
import { slowHandlerWarning } from '../../../src/plugins.js';
import { Control, problemsOf, run } from './plugin-kit.js';

let control: Control;
beforeEach(() => void (control = new Control()));

const after = (ms: number): Promise<Outcome> =>
  new Promise((resolve) => control.clock.setTimer(ms, () => resolve(success())));
const never = (): Promise<Outcome> => new Promise(() => undefined);
const elapsed = (): unknown[] => control.linesAt('warn').map(({ fields }) => fields['elapsedMs']);

it('warns once of a run that goes on, while it goes on, and names it', async () => {
  const plugin = await control.start(slowHandlerWarning({ afterMs: 1_000 }));
  void run(plugin, never, { attempt: 3 });
  await control.clock.advanceBy(999);
  expect(control.log).toEqual([]);
  await control.clock.advanceBy(60_000);
  expect(control.linesAt('warn')).toEqual([
    {
      level: 'warn',
      message: 'handler is slow: the run goes on',
      fields: {
        handler: 'billing',
        topic: 'persistent://public/default/orders',
        messageId: '1:2:-1',
        attempt: 3,
        elapsedMs: 1_000,
      },
    },
  ]);
});

it('says nothing of runs that end in time, however many there are', async () => {
  const plugin = await control.start(slowHandlerWarning({ afterMs: 1_000 }));
  for (let i = 0; i < 50; i += 1) {
    void run(plugin, () => after(900));
    await control.clock.advanceBy(100);
  }
  await control.clock.advanceBy(5_000);
  expect(control.log).toEqual([]);
});

it('warns of each slow run at its own time', async () => {
  const plugin = await control.start(slowHandlerWarning({ afterMs: 1_000 }));
  const begunMs = control.clock.now();
  const warnedAt: number[] = [];
  control.logger.warn = () => void warnedAt.push(control.clock.now() - begunMs);
  for (const pause of [0, 300, 0, 500]) {
    await control.clock.advanceBy(pause);
    void run(plugin, never);
  }
  await control.clock.advanceBy(5_000);
  expect(warnedAt).toEqual([1_000, 1_300, 1_300, 1_800]);
});

it('repeats the warning where asked to, until the run ends', async () => {
  const plugin = await control.start(slowHandlerWarning({ afterMs: 1_000, repeat: true }));
  void run(plugin, () => after(3_500));
  await control.clock.advanceBy(10_000);
  expect(elapsed()).toEqual([1_000, 2_000, 3_000]);
  expect(control.clock.pendingTimers).toEqual([]);
});

it('hands on what the handler gives and throws', async () => {
  const plugin = await control.start(slowHandlerWarning({ afterMs: 1 }));
  const outcome = success();
  const error = new Error('x');
  expect(await run(plugin, () => outcome)).toBe(outcome);
  const thrown = (): Outcome => {
    throw error;
  };
  expect(await run(plugin, thrown).catch((caught: unknown) => caught)).toBe(error);
  await control.clock.advanceBy(10_000);
  expect(control.log).toEqual([]);
});

it('has one timer, however many runs go on, and none once they have ended', async () => {
  const plugin = await control.start(slowHandlerWarning({ afterMs: 1_000 }));
  const ends: (() => void)[] = [];
  for (let i = 0; i < 100; i += 1)
    void run(plugin, () => new Promise((resolve) => ends.push(() => resolve(success()))));
  expect(control.clock.pendingTimers).toEqual([1_000]);
  for (const end of ends) end();
  await control.clock.advanceBy(1_000);
  expect(control.clock.pendingTimers).toEqual([]);
});

it('leaves no timer when the runtime has closed, also for a run that never ends', async () => {
  const plugin = await control.start(slowHandlerWarning({ afterMs: 1_000, repeat: true }));
  void run(plugin, never);
  await plugin.onClose?.();
  expect(control.clock.pendingTimers).toEqual([]);
});

it('counts in one line what is slow beyond twenty at the same moment', async () => {
  const plugin = await control.start(slowHandlerWarning({ afterMs: 1_000 }));
  for (let i = 0; i < 25; i += 1) void run(plugin, never);
  await control.clock.advanceBy(1_000);
  expect(control.linesAt('warn')).toHaveLength(21);
  expect(control.linesAt('warn').at(-1)).toMatchObject({ message: 'more handlers are slow', fields: { runs: 5 } });
});

describe('options', () => {
  it('are checked all at once', () => {
    expect(problemsOf(() => slowHandlerWarning({ afterMs: 0, repeat: 1, after: 5 } as never))).toEqual([
      'slowHandlerWarning: unknown option "after", did you mean "afterMs"?',
      'slowHandlerWarning: "afterMs" must be a duration of at least 1 ms (in milliseconds), got 0',
      'slowHandlerWarning: "repeat" must be true or false, got 1',
    ]);
  });

  it('that are missing are named', () => {
    expect(problemsOf(() => slowHandlerWarning({} as never))).toEqual([
      'slowHandlerWarning: "afterMs" is missing; it must be a duration in milliseconds',
    ]);
  });
});

it('writes each line in the context of its run, so that a logger finds the trace of that run', async () => {
  const active = new AsyncLocalStorage<string>();
  const seen: (string | undefined)[] = [];
  const plugin = slowHandlerWarning({ afterMs: 1_000 });
  const { clock, logger: kept, transport } = control;
  const logger = { ...kept, warn: () => void seen.push(active.getStore()) };
  await plugin.onStart?.({ clock, transport, logger, health: () => [], drain: fail, close: fail });
  for (const name of ['first', 'second']) active.run(name, () => void run(plugin, never));
  await clock.advanceBy(1_000);
  expect(seen).toEqual(['first', 'second']);
});

function fail(): never {
  throw new Error('not asked for');
}
