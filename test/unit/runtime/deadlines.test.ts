// Time limits of one length: each expires after its time, and time that nobody has had counts against none.
import type { Clock } from 'pulsework';
import { seconds } from 'pulsework';
import { FakeClock } from 'pulsework/testing';
import { expect, it } from 'vitest';
import { Deadlines } from '../../../src/runtime/deadlines.js';

/** A clock of a machine that can stand still: its timers do not notice, the time of day does. */
function standingClock(time: FakeClock): { readonly clock: Clock; readonly standStill: (ms: number) => void } {
  let stoodMs = 0;
  const clock: Clock = {
    now: () => time.now() + stoodMs,
    setTimer: (delayMs, run) => time.setTimer(delayMs, run),
    nextTurn: (run) => time.nextTurn(run),
  };
  return { clock, standStill: (ms) => void (stoodMs += ms) };
}

it('each expires once its time is over, in the order in which they were added, but for those that were removed', async () => {
  const time = new FakeClock();
  const deadlines = new Deadlines(time, seconds(60));
  const expired: string[] = [];
  deadlines.add(() => expired.push('a'));
  await time.advanceBy(seconds(20));
  const removed = deadlines.add(() => expired.push('b'));
  deadlines.add(() => expired.push('c'));
  removed.remove();
  await time.advanceBy(seconds(40) - 1);
  expect(expired).toEqual([]);
  await time.advanceBy(1);
  expect(expired).toEqual(['a']);
  await time.advanceBy(seconds(20));
  expect(expired).toEqual(['a', 'c']);
  expect(time.pendingTimers).toEqual([]);
});

it('a machine that stood still takes its time from none: what had begun a second before has the rest of its minute', async () => {
  const time = new FakeClock();
  const { clock, standStill } = standingClock(time);
  const deadlines = new Deadlines(clock, seconds(60));
  const expired: string[] = [];
  deadlines.add(() => expired.push('first'));
  await time.advanceBy(seconds(59));
  deadlines.add(() => expired.push('second'));
  standStill(seconds(90));
  await time.advanceBy(seconds(1));
  expect(expired).toEqual(['first']);
  await time.advanceBy(seconds(59) - 1);
  expect(expired).toEqual(['first']);
  await time.advanceBy(1);
  expect(expired).toEqual(['first', 'second']);
});
