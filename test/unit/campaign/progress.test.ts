// How far a campaign is: a bar for a person, now and then a line for a log.
import { expect, it } from 'vitest';
import { Progress } from '../../campaign/progress.js';

function watch(isTTY: boolean) {
  const written: string[] = [];
  const time = { ms: 0 };
  const progress = new Progress({ isTTY, write: (text: string) => written.push(text) }, 'c', 10, () => time.ms);
  return { written, time, progress };
}

it('on a terminal is one line that is drawn anew', () => {
  const { written, time, progress } = watch(true);
  time.ms = 4_000;

  progress.update(5, 1);

  expect(written.at(-1)).toBe(
    `\r\u001b[K[${'='.repeat(15)}${' '.repeat(15)}] c: 5 of 10 runs, 1 violated, about 4 s left`,
  );
  expect(written.join('')).not.toContain('\n');
});

it('elsewhere is a line every fifteen seconds, without control characters', () => {
  const { written, time, progress } = watch(false);
  for (let done = 1; done <= 8; done++) {
    time.ms = done * 5_000;
    progress.update(done, 0);
  }
  progress.clear();

  expect(written).toEqual([
    'c: 3 of 10 runs, 0 violated, about 35 s left\n',
    'c: 6 of 10 runs, 0 violated, about 20 s left\n',
  ]);
});
