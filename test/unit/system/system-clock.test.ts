// The only tests on real time: each waits a few milliseconds.
import { describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/index.js';
import { timeOfDay } from '../../../src/system/system-clock.js';

describe('the system clock', () => {
  it('tells the time of day', () => {
    expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(60_000);
  });

  it('does not follow a wall clock that is set back', () => {
    const before = systemClock.now();
    const wall = vi.spyOn(Date, 'now').mockReturnValue(0);
    expect(systemClock.now()).toBeGreaterThanOrEqual(before);
    wall.mockRestore();
  });

  it('follows a wall clock that is put on, and waits for one that is put back, at half its pace', () => {
    let wall = 1_000_000;
    let elapsed = 50.5;
    const now = timeOfDay(
      () => wall,
      () => elapsed,
    );
    const times = [now()];
    const pass = (wallMs: number, elapsedMs: number): void => {
      wall += wallMs;
      elapsed += elapsedMs;
      times.push(now());
    };
    pass(10, 10);
    pass(90_000, 20);
    pass(5, 5);
    pass(-6_000, 4);
    pass(2_000, 2_000);
    pass(20_000, 20_000);
    pass(1, 1);
    expect(times).toEqual([1_000_000, 1_000_010, 1_090_010, 1_090_015, 1_090_017, 1_091_017, 1_106_015, 1_106_016]);
  });

  it('tells how much time passes, whatever the wall clock is set to', () => {
    const before = systemClock.elapsedMs();
    const wall = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_600_000);
    const passedMs = systemClock.elapsedMs() - before;
    wall.mockRestore();
    expect(passedMs).toBeGreaterThanOrEqual(0);
    expect(passedMs).toBeLessThan(60_000);
  });

  it('never runs a timer early, and never inside the call', async () => {
    for (let i = 0; i < 5; i++) {
      const startMs = performance.now();
      let inside = true;
      await new Promise<void>((resolve) => {
        systemClock.setTimer(2, () => {
          expect(inside).toBe(false);
          resolve();
        });
        inside = false;
      });
      expect(performance.now() - startMs).toBeGreaterThanOrEqual(2);
    }
  });

  it('does not run a timer that was cancelled', async () => {
    const ran: string[] = [];
    systemClock.setTimer(1, () => ran.push('cancelled')).cancel();
    await new Promise<void>((resolve) => systemClock.setTimer(3, resolve));
    expect(ran).toEqual([]);
  });

  it('takes a delay longer than Node can: it does not fire at once', async () => {
    let fired = false;
    const timer = systemClock.setTimer(2 ** 40, () => (fired = true));
    await new Promise<void>((resolve) => systemClock.setTimer(3, resolve));
    timer.cancel();
    expect(fired).toBe(false);
  });

  it('lets input and promises have their turn before the next one', async () => {
    const order: string[] = [];
    await new Promise<void>((resolve) => {
      systemClock.nextTurn(() => {
        order.push('turn');
        resolve();
      });
      void Promise.resolve().then(() => order.push('promise'));
    });
    expect(order).toEqual(['promise', 'turn']);
  });
});
