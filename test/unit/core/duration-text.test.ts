// Durations in words are exact.
import { expect, it } from 'vitest';
import { durationText } from '../../../src/core/duration-text.js';
import { days, hours, minutes, seconds } from '../../../src/core/options.js';

it.each([
  [0, '0 ms'],
  [999, '999 ms'],
  [1_000, '1 s'],
  [1_001, '1.001 s'],
  [59_999, '59.999 s'],
  [minutes(1), '1 min'],
  [minutes(17) + 4_500, '17 min 4.5 s'],
  [hours(1) + seconds(1), '1 h 1 s'],
  [days(2) + hours(3) + minutes(4), '2 d 3 h 4 min'],
  [days(365), '365 d'],
])('%d ms is %s', (durationMs, text) => {
  expect(durationText(durationMs)).toBe(text);
});
