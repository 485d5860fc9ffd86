// From samples to rows, and from rows to what is printed.
import { pairedRatios, summarize } from './statistics.js';
import type { Summary } from './statistics.js';
import type { Benchmark, Measurement } from './variant.js';

/** One figure of one variant, as `--json` prints it. */
export interface Row {
  /** Of the benchmark. */
  readonly name: string;
  readonly variant: string;
  readonly unit: string;
  readonly median: number;
  readonly p10: number;
  readonly p90: number;
  /** The variant that this one is compared with; null where there is none. */
  readonly baseline: string | null;
  /** This variant's figure divided by the baseline's, in this unit; null without a baseline. */
  readonly ratio: number | null;
  /** The spread of the ratios, each of a round; null without a baseline. */
  readonly ratioP10: number | null;
  readonly ratioP90: number | null;
}

/** Measurements by variant, one per round, the same number for each. */
export type Samples = ReadonlyMap<string, readonly Measurement[]>;

export function rowsOf(benchmark: Benchmark, samples: Samples): Row[] {
  const rows: Row[] = [];
  for (const { name: variant, baseline, lessBaseline = false } of benchmark.variants) {
    const own = samples.get(variant) ?? [];
    const compared = samples.get(baseline ?? '') ?? [];
    for (const unit of Object.keys(own[0] ?? {})) {
      const values = valuesOf(own, unit);
      const baselineValues = valuesOf(compared, unit);
      const comparable = baseline !== undefined && baselineValues.length > 0;
      const row = {
        name: benchmark.name,
        variant,
        unit,
        ...summarize(values),
        ...(comparable ? comparedWith(baseline, pairedRatios(values, baselineValues)) : NOT_COMPARED),
      };
      rows.push(row);
      if (unit.startsWith('ns/')) rows.push(perSecond(row));
      if (!comparable || !lessBaseline) continue;
      const less = values.map((value, round) => value - (baselineValues[round] ?? NaN));
      const difference = { name: benchmark.name, variant: `${variant}, less ${baseline}`, unit };
      rows.push({ ...difference, ...summarize(less), ...NOT_COMPARED });
    }
  }
  return rows;
}

type Comparison = Pick<Row, 'baseline' | 'ratio' | 'ratioP10' | 'ratioP90'>;

const NOT_COMPARED: Comparison = { baseline: null, ratio: null, ratioP10: null, ratioP90: null };

function comparedWith(baseline: string, { median, p10, p90 }: Summary): Comparison {
  return { baseline, ratio: median, ratioP10: p10, ratioP90: p90 };
}

function valuesOf(measurements: readonly Measurement[], unit: string): number[] {
  return measurements.map((measurement) => measurement[unit]).filter((value) => value !== undefined);
}

/** The same figures as a rate: the slow end of one is the slow end of the other. */
function perSecond(row: Row): Row {
  const rate = (ns: number): number => 1e9 / ns;
  return {
    ...row,
    unit: `${row.unit.slice('ns/'.length)}s/s`,
    median: rate(row.median),
    p10: rate(row.p90),
    p90: rate(row.p10),
    ratio: turnedOver(row.ratio),
    ratioP10: turnedOver(row.ratioP90),
    ratioP90: turnedOver(row.ratioP10),
  };
}

function turnedOver(ratio: number | null): number | null {
  return ratio === null ? null : 1 / ratio;
}

const HEADINGS = [
  'benchmark',
  'variant',
  'unit',
  'median',
  'p10',
  'p90',
  'ratio',
  'ratio p10',
  'ratio p90',
  'to',
] as const;

/** A Markdown table, so that it can be pasted. */
export function tableOf(rows: readonly Row[]): string {
  const cells = rows.map((row) => [
    row.name,
    row.variant,
    row.unit,
    shown(row.median),
    shown(row.p10),
    shown(row.p90),
    shownRatio(row.ratio),
    shownRatio(row.ratioP10),
    shownRatio(row.ratioP90),
    row.baseline ?? '',
  ]);
  const widths = HEADINGS.map((heading, column) =>
    Math.max(heading.length, ...cells.map((line) => line[column]?.length ?? 0)),
  );
  const line = (texts: readonly string[]): string =>
    `| ${texts.map((text, column) => (isNumber(column) ? text.padStart(widths[column] ?? 0) : text.padEnd(widths[column] ?? 0))).join(' | ')} |`;
  const rule = `| ${widths.map((width, column) => (isNumber(column) ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width))).join(' | ')} |`;
  return [line(HEADINGS), rule, ...cells.map(line)].join('\n');
}

function isNumber(column: number): boolean {
  return column >= HEADINGS.indexOf('median') && column <= HEADINGS.indexOf('ratio p90');
}

function shown(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

function shownRatio(ratio: number | null): string {
  return ratio === null ? '' : ratio.toFixed(2);
}
