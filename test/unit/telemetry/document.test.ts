// docs/observability.md lists every metric, attribute and option, and no other.
import { describe, expect, it } from 'vitest';
import { COUNTERS, GAUGES, HISTOGRAMS } from '../../../src/telemetry/instruments.js';
import { resolveOpenTelemetryOptions } from '../../../src/telemetry/open-telemetry-options.js';
import * as names from '../../../src/telemetry/semconv.js';
import { WORKFLOW_METRICS } from '../../../src/telemetry/workflow-instruments.js';
import * as workflowNames from '../../../src/telemetry/workflow-semconv.js';
import { textOf } from '../../architecture/source-files.js';

const page = textOf('docs/observability.md');

/** Rows of the tables of a section, cell by cell. */
function rowsOf(title: string): readonly (readonly string[])[] {
  const section = page.split(/^##+ /m).find((text) => text.startsWith(`${title}\n`)) ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('| `'));
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

function quoted(cells: readonly string[]): string[] {
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name));
}

describe('docs/observability.md', () => {
  it('lists every metric with its unit', () => {
    const all = [COUNTERS, GAUGES, HISTOGRAMS].flatMap((table) => Object.values(table));
    const listed = rowsOf('Metrics').map(([name = '', , unit]) => `${quoted([name])[0] ?? ''} ${unit ?? ''}`);

    expect(listed.toSorted()).toEqual(all.map(({ name, unit }) => `${name} ${unit}`).toSorted());
  });

  it('lists every attribute of spans', () => {
    const onMetricsOnly: unknown[] = [names.PAUSE_REASON, names.SETTLEMENT_CALL, names.OUTBOX_STORE];
    const all = Object.values(names).filter(
      (name) => typeof name === 'string' && /[a-z]\.[a-z]/.test(name) && !onMetricsOnly.includes(name),
    );

    expect(quoted(rowsOf('Attributes').map(([name = '']) => name)).toSorted()).toEqual(all.toSorted());
  });

  it('lists every metric and every attribute of workflows', () => {
    const rows = rowsOf('Workflows');
    const isMetric = ([name = '']: readonly string[]): boolean =>
      Object.values(WORKFLOW_METRICS).some((metric) => quoted([name])[0] === metric.name);
    const listed = rows.filter(isMetric).map(([name = '', , unit]) => `${quoted([name])[0] ?? ''} ${unit ?? ''}`);
    const attributes = rows.filter((row) => !isMetric(row)).flatMap(([name = '']) => quoted([name]));
    const known: readonly string[] = [...Object.values(workflowNames), names.ATTEMPT];

    const all = Object.values(WORKFLOW_METRICS).map(({ name, unit }) => `${name} ${unit}`);
    expect(listed.toSorted()).toEqual(all.toSorted());
    expect(attributes.filter((name) => name.startsWith('pulsework.')).toSorted()).toEqual(known.toSorted());
  });

  it('lists every option', () => {
    const all = Object.keys(resolveOpenTelemetryOptions({}));

    expect(quoted(rowsOf('Options').map(([name = '']) => name)).toSorted()).toEqual(all.toSorted());
  });
});
