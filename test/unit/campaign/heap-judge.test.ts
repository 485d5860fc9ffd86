// What counts as a heap that grows.
import { describe, expect, it } from 'vitest';
import { judgeHeap } from '../../support/soak/heap-judge.js';
import type { HeapSample } from '../../support/soak/heap-judge.js';

const LIMITS = { warmUpShare: 0.2, maxGrowth: 0.05, slackBytes: 0 };

/** One a second. */
function samplesOf(count: number, bytesAt: (n: number) => number): HeapSample[] {
  return Array.from({ length: count }, (_, n) => ({ atMs: n * 1_000, bytes: bytesAt(n) }));
}

/** The same noise every time, within ±1. */
function noise(n: number): number {
  return Math.sin(n * 12.9898) * Math.cos(n * 78.233);
}

describe('judgeHeap', () => {
  it('a heap that is level is flat', () => {
    const verdict = judgeHeap(
      samplesOf(100, () => 20_000_000),
      LIMITS,
    );

    expect(verdict).toMatchObject({ isFlat: true, growth: 0, grownBytes: 0 });
  });

  it('one that is level with noise of 10 % is flat', () => {
    const { isFlat, growth } = judgeHeap(
      samplesOf(180, (n) => 20_000_000 + 2_000_000 * noise(n)),
      LIMITS,
    );

    expect(isFlat).toBe(true);
    expect(Math.abs(growth)).toBeLessThan(0.02);
  });

  it('one that grows by 6 % in all, under noise of 2 %, is not', () => {
    const { isFlat, growth } = judgeHeap(
      samplesOf(180, (n) => 20_000_000 * (1 + (0.06 * n) / 144) + 400_000 * noise(n)),
      LIMITS,
    );

    expect(isFlat).toBe(false);
    expect(growth).toBeCloseTo(0.06, 2);
  });

  it('what grows at the beginning and is level then is flat', () => {
    const { isFlat } = judgeHeap(
      samplesOf(100, (n) => 10_000_000 + 500_000 * Math.min(n, 19)),
      LIMITS,
    );

    expect(isFlat).toBe(true);
  });

  it('a few samples that something else disturbed do not make it grow', () => {
    const { isFlat } = judgeHeap(
      samplesOf(100, (n) => (n > 95 ? 60_000_000 : 20_000_000)),
      LIMITS,
    );

    expect(isFlat).toBe(true);
  });

  it('one that shrinks is flat', () => {
    const { isFlat, growth } = judgeHeap(
      samplesOf(50, (n) => 20_000_000 - n * 100_000),
      LIMITS,
    );

    expect(isFlat).toBe(true);
    expect(growth).toBeLessThan(0);
  });

  it('growth within the slack is noise, and beyond it is not', () => {
    const growing = samplesOf(50, (n) => 10_000_000 + n * 50_000);

    expect(judgeHeap(growing, { ...LIMITS, slackBytes: 3_000_000 }).isFlat).toBe(true);
    expect(judgeHeap(growing, { ...LIMITS, slackBytes: 1_000_000 }).isFlat).toBe(false);
  });

  it('gives medians of the first and the last third', () => {
    const verdict = judgeHeap(
      samplesOf(9, (n) => n),
      { ...LIMITS, warmUpShare: 0 },
    );

    expect(verdict).toMatchObject({ samples: 9, firstBytes: 1, lastBytes: 7 });
  });

  it.each([0, 3])('%i samples say nothing', (count) => {
    const judge = () =>
      judgeHeap(
        samplesOf(count, () => 1),
        { ...LIMITS, warmUpShare: 0 },
      );

    expect(judge).toThrow(`${count} samples of the heap after warm-up, 4 are needed`);
  });
});
