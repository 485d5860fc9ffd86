// Time limits of one length: each expires after its time, whatever the clock of the machine is set to meanwhile.
import type { Clock } from 'pulsework';
import { hours, seconds } from 'pulsework';
import { FakeClock } from 'pulsework/testing';
import { expect, it } from 'vitest';
import { Deadlines } from '../../../src/runtime/deadlines.js';

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

it('a clock of the machine that is put on, back or on and back again changes none of them', async () => {
  const time = new FakeClock();
  let setByMs = 0;
  const clock: Clock = {
    now: () => time.now() + setByMs,
    elapsedMs: () => time.elapsedMs(),
    setTimer: (delayMs, run) => time.setTimer(delayMs, run),
    nextTurn: (run) => time.nextTurn(run),
  };
  const deadlines = new Deadlines(clock, seconds(60));
  const expired: [string, number][] = [];
  const startMs = time.now();
  const add = (name: string) => deadlines.add(() => expired.push([name, time.now() - startMs]));
  add('before');
  await time.advanceBy(seconds(59));
  add('a second before');
  setByMs = hours(1);
  add('after');
  await time.advanceBy(seconds(2));
  add('later');
  setByMs = -hours(1);
  await time.advanceBy(hours(1));
  expect(expired).toEqual([
    ['before', seconds(60)],
    ['a second before', seconds(119)],
    ['after', seconds(119)],
    ['later', seconds(121)],
  ]);
});
