import { beforeEach, describe, expect, it } from 'vitest';
import { PulseworkError } from '../../../src/core/errors.js';
import type { ProcessSignals } from '../../../src/plugins.js';
import { drainOnSignals } from '../../../src/plugins.js';
import { Control, problemsOf } from './plugin-kit.js';

class SignalSource implements ProcessSignals {
  readonly names = ['SIGTERM', 'SIGINT', 'SIGHUP'];
  readonly listeners = new Map<string, Set<() => void>>();

  on(signal: string, run: () => void): () => void {
    const listeners = this.listeners.get(signal) ?? new Set();
    this.listeners.set(signal, listeners.add(run));
    return () => void listeners.delete(run);
  }

  send(signal: string): void {
    for (const run of this.listeners.get(signal) ?? []) run();
  }

  get count(): number {
    return [...this.listeners.values()].reduce((sum, { size }) => sum + size, 0);
  }
}

let control: Control;
let processSignals: SignalSource;
beforeEach(() => {
  control = new Control();
  processSignals = new SignalSource();
});

describe('a signal', () => {
  it.each(['SIGTERM', 'SIGINT'])('%s drains, and says so', async (signal) => {
    await control.start(drainOnSignals({ processSignals }));
    processSignals.send(signal);
    expect(control.asked).toEqual(['drain']);
    expect(control.linesAt('info')).toMatchObject([{ fields: { signal } }]);
  });

  it('that is not listed does nothing', async () => {
    await control.start(drainOnSignals({ processSignals, signals: ['SIGHUP'] }));
    processSignals.send('SIGTERM');
    expect(control.asked).toEqual([]);
  });

  it('the second time closes at once', async () => {
    await control.start(drainOnSignals({ processSignals }));
    processSignals.send('SIGTERM');
    await control.clock.advanceBy(1_000);
    processSignals.send('SIGTERM');
    expect(control.asked).toEqual(['drain', 'close']);
  });

  it('of another kind closes at once too, however soon it comes', async () => {
    await control.start(drainOnSignals({ processSignals }));
    processSignals.send('SIGTERM');
    processSignals.send('SIGINT');
    expect(control.asked).toEqual(['drain', 'close']);
  });

  it('that a launcher passes on as well counts once', async () => {
    // npm forwards a Ctrl-C which its child has got from the terminal already.
    await control.start(drainOnSignals({ processSignals }));
    processSignals.send('SIGINT');
    await control.clock.advanceBy(499);
    processSignals.send('SIGINT');
    expect(control.asked).toEqual(['drain']);
  });

  it('the third time has its usual effect: nobody listens any more', async () => {
    await control.start(drainOnSignals({ processSignals }));
    processSignals.send('SIGTERM');
    processSignals.send('SIGINT');
    expect(processSignals.count).toBe(0);
  });

  it('while other plugins still start drains as soon as the runtime can', async () => {
    await control.start(drainOnSignals({ processSignals }));
    control.answer = () => {
      throw new PulseworkError('ILLEGAL_STATE', 'runtime is starting; drain() needs running');
    };
    processSignals.send('SIGTERM');
    control.answer = () => Promise.resolve();
    await control.clock.advanceBy(100);
    expect(control.asked).toEqual(['drain', 'drain']);
    expect(control.clock.pendingTimers).toEqual([]);
  });

  it('whose drain fails is logged and ends nothing else', async () => {
    await control.start(drainOnSignals({ processSignals }));
    control.answer = () => Promise.reject(new Error('broken'));
    processSignals.send('SIGTERM');
    await control.clock.advanceBy(0);
    expect(control.linesAt('error')).toMatchObject([{ fields: { error: new Error('broken') } }]);
  });
});

it('listens no more when the runtime has closed, and asks no more', async () => {
  const plugin = await control.start(drainOnSignals({ processSignals }));
  control.answer = () => Promise.reject(new PulseworkError('ILLEGAL_STATE', 'runtime is starting'));
  processSignals.send('SIGTERM');
  await control.clock.advanceBy(0);
  await plugin.onClose?.();
  expect(processSignals.count).toBe(0);
  expect(control.clock.pendingTimers).toEqual([]);
});

it('listens once for a signal that is named twice', async () => {
  await control.start(drainOnSignals({ processSignals, signals: ['SIGTERM', 'SIGTERM'] }));
  expect(processSignals.count).toBe(1);
});

it('gets the signals of this process, and gives back their usual effect', async () => {
  const before = process.listenerCount('SIGHUP');
  const plugin = await control.start(drainOnSignals({ signals: ['SIGHUP'] }));
  expect(process.listenerCount('SIGHUP')).toBe(before + 1);
  process.kill(process.pid, 'SIGHUP');
  await expect.poll(() => control.asked).toEqual(['drain']);
  await plugin.onClose?.();
  expect(process.listenerCount('SIGHUP')).toBe(before);
});

describe('options', () => {
  it('are checked all at once', () => {
    const options = { signals: ['SIGKILL', 'SIGTREM'], signal: 1 };
    const rule = 'drainOnSignals: "signals" must be signals that can be listened for here, such as SIGTERM and SIGINT';
    expect(problemsOf(() => drainOnSignals(options))).toEqual([
      'drainOnSignals: unknown option "signal", did you mean "signals"?',
      `${rule}; got "SIGKILL"`,
      `${rule}; got "SIGTREM"`,
    ]);
  });

  it.each([
    [{ signals: [] }, '"signals" must be a list of at least one signal'],
    [{ signals: 'SIGTERM' as never }, '"signals" must be a list of at least one signal'],
    [{ processSignals: null as never }, '"processSignals" must have the methods on'],
    [null as never, '"options" must be an object'],
  ])('%j are refused', (options, problem) => {
    expect(problemsOf(() => drainOnSignals(options)).join()).toContain(problem);
  });
});
