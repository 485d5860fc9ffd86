// FakeClock: what moves it, what it refuses, and how a test waits for real I/O.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Runtime, consoleLogger, defineHandler, retry, seconds, success, topic } from 'pulsework';
import { embedded } from 'pulsework/embedded';
import { FakeClock } from 'pulsework/testing';
import { describe, expect, it } from 'vitest';

const START_MS = Date.UTC(2026, 0, 1);

describe('advanceBy', () => {
  it('runs timers in the order of their due times, each at its own', async () => {
    const clock = new FakeClock(START_MS);
    const ran: number[] = [];
    for (const delayMs of [30, 10, 20]) clock.setTimer(delayMs, () => ran.push(clock.now() - START_MS));
    await clock.advanceBy(25);
    expect([ran, clock.now() - START_MS, clock.pendingTimers]).toEqual([[10, 20], 25, [5]]);
  });

  it.each([-1, NaN, Infinity, '5'])('refuses %s, which is no time to let pass', async (ms) => {
    const clock = new FakeClock(START_MS);
    await expect(clock.advanceBy(ms as number)).rejects.toThrow('advanceBy: "ms" must be a duration of 0 ms or more');
    expect(clock.now()).toBe(START_MS);
  });

  it('refuses to be told nothing', async () => {
    await expect(new FakeClock().advanceBy(undefined as never)).rejects.toThrow('advanceBy: "ms" is missing');
  });
});

describe('advanceUntil', () => {
  it('moves no time where the condition holds once promises have settled', async () => {
    const clock = new FakeClock(START_MS);
    let settled = false;
    void Promise.resolve().then(() => (settled = true));
    await clock.advanceUntil(() => settled);
    expect(clock.now()).toBe(START_MS);
  });

  it('moves in steps, and not beyond the one in which the condition holds', async () => {
    const clock = new FakeClock(START_MS);
    let due = false;
    clock.setTimer(250, () => (due = true));
    await clock.advanceUntil(() => due, { stepMs: 100 });
    expect(clock.now() - START_MS).toBe(300);
  });

  it('waits for a condition that takes a promise', async () => {
    const clock = new FakeClock();
    let due = false;
    clock.setTimer(1, () => (due = true));
    await clock.advanceUntil(async () => due);
    expect(due).toBe(true);
  });

  it('gives up at its limit, exactly, and says so', async () => {
    const clock = new FakeClock(START_MS);
    const waiting = clock.advanceUntil(() => false, { stepMs: 400, maxMs: 1_000 });
    await expect(waiting).rejects.toThrow('the condition did not hold within 1000 ms of virtual time');
    expect(clock.now() - START_MS).toBe(1_000);
  });

  it('says all that is wrong with its options', async () => {
    const clock = new FakeClock();
    const options = { stepMs: 0, maxMs: -1, max: 5 };
    await expect(clock.advanceUntil(5 as never, options)).rejects.toMatchObject({
      problems: [
        'advanceUntil: "condition" must be a function, got 5',
        'advanceUntil: unknown option "max", did you mean "maxMs"?',
        'advanceUntil: "stepMs" must be a duration of at least 1 ms (in milliseconds), got 0',
        'advanceUntil: "maxMs" must be a duration of 0 ms or more (in milliseconds), got -1',
      ],
    });
  });

  it('lets a handler that reads files end within its time limits, over retries', async () => {
    const clock = new FakeClock();
    const orders = topic('orders');
    const attempts: number[] = [];
    const reader = defineHandler({
      name: 'reader',
      source: orders,
      subscription: 'reader',
      timeoutMs: seconds(30),
      handle: async ({ attempt }) => {
        const text = await readFile(fileURLToPath(import.meta.url), 'utf8');
        attempts.push(attempt);
        return attempt < 3 || text === '' ? retry('once more') : success();
      },
    });
    const logger = consoleLogger({ level: 'silent' });
    const runtime = await Runtime.start({ transport: embedded({ clock }), handlers: [reader], logger });
    await runtime.publisher(orders).publish({});
    await clock.advanceUntil(() => attempts.length === 3);
    expect(attempts).toEqual([1, 2, 3]);
    await runtime.drain();
  });
});
