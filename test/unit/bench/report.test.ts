// From samples to the rows that `--json` prints.
import { expect, it } from 'vitest';
import { rowsOf, tableOf } from '../../bench/report.js';
import type { Benchmark, Measurement, Variant } from '../../bench/variant.js';

const measure = (): Promise<Measurement> => Promise.reject(new Error('not measured in these tests'));

function benchmarkOf(...variants: Partial<Variant>[]): Benchmark {
  const whole = variants.map((variant) => ({ name: 'bare', warmUpRounds: 0, measure, ...variant }));
  return { name: 'runtime', processes: 1, rounds: 1, variants: whole };
}

function samplesOf(samples: Record<string, readonly Measurement[]>): Map<string, readonly Measurement[]> {
  return new Map(Object.entries(samples));
}

it('a row has the spread of the samples and the ratio to the baseline', () => {
  const benchmark = benchmarkOf({}, { name: 'whole', baseline: 'bare' });
  const samples = samplesOf({ bare: [{ bytes: 10 }, { bytes: 20 }], whole: [{ bytes: 30 }, { bytes: 60 }] });

  expect(rowsOf(benchmark, samples)[1]).toEqual({
    name: 'runtime',
    variant: 'whole',
    unit: 'bytes',
    median: 45,
    p10: 33,
    p90: 57,
    baseline: 'bare',
    ratio: 3,
    ratioP10: 3,
    ratioP90: 3,
  });
});

it('a baseline is compared with nothing', () => {
  const [row] = rowsOf(benchmarkOf({}), samplesOf({ bare: [{ bytes: 10 }] }));

  expect(row).toMatchObject({ variant: 'bare', baseline: null, ratio: null });
});

it('a unit that the baseline does not have is compared with nothing', () => {
  const benchmark = benchmarkOf({}, { name: 'whole', baseline: 'bare' });
  const rows = rowsOf(benchmark, samplesOf({ bare: [{ bytes: 10 }], whole: [{ bytes: 30, timers: 1 }] }));

  expect(rows.find(({ unit }) => unit === 'timers')).toMatchObject({ median: 1, baseline: null, ratio: null });
});

it('time per message is told as a rate too, its slow end and its ratio turned over', () => {
  const benchmark = benchmarkOf({}, { name: 'whole', baseline: 'bare' });
  const bare = [{ 'ns/message': 1_000 }, { 'ns/message': 1_000 }];
  const whole = [{ 'ns/message': 2_000 }, { 'ns/message': 4_000 }];
  const rates = rowsOf(benchmark, samplesOf({ bare, whole })).filter(({ unit }) => unit === 'messages/s');

  expect(rates[1]?.p10).toBeLessThan(rates[1]?.p90 ?? 0);
  expect(rates[1]?.ratio).toBeCloseTo(1 / 3);
  expect(rates[1]?.ratioP10).toBeCloseTo(1 / 3.8);
  expect(rates[1]?.ratioP90).toBeCloseTo(1 / 2.2);
});

it('what is beyond the baseline is taken round by round where a variant asks for it', () => {
  const benchmark = benchmarkOf({}, { name: 'held', baseline: 'bare', lessBaseline: true });
  const samples = samplesOf({ bare: [{ bytes: 40 }, { bytes: 90 }], held: [{ bytes: 160 }, { bytes: 210 }] });
  const row = rowsOf(benchmark, samples).find(({ variant }) => variant === 'held, less bare');

  expect(row).toMatchObject({ unit: 'bytes', median: 120, p10: 120, p90: 120, baseline: null, ratio: null });
});

it('the table has a line for each row, all of one width', () => {
  const lines = tableOf(rowsOf(benchmarkOf({}), samplesOf({ bare: [{ 'ns/message': 1_234 }] }))).split('\n');

  expect(lines).toHaveLength(4);
  expect(new Set(lines.map(({ length }) => length)).size).toBe(1);
  expect(lines[2]).toContain('1,234');
});
