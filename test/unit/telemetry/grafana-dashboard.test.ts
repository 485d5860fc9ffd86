// docs/grafana-dashboard.json asks for what the SDK's Prometheus exporter really exports, metric by metric, label by label.
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { beforeAll, describe, expect, it } from 'vitest';
import { COUNTERS, GAUGES, HISTOGRAMS } from '../../../src/telemetry/instruments.js';
import { WORKFLOW_METRICS } from '../../../src/telemetry/workflow-instruments.js';
import { FakeClock } from '../../../src/testing.js';
import { textOf } from '../../architecture/source-files.js';
import { dashboard, dashboardQueries, labelsIn, metricsIn } from '../../support/dashboard-queries.js';
import { MetricsWorld } from '../../support/metrics-world.js';

/** Those that Prometheus adds when it scrapes. */
const TARGET_LABELS = ['job', 'instance'];
const queries = dashboardQueries();

/** Labels by metric, as they stand in what is scraped. */
let exported: ReadonlyMap<string, ReadonlySet<string>> = new Map();
let instruments: readonly string[] = [];

beforeAll(async () => {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const clock = new FakeClock();
  const world = new MetricsWorld({ meterProvider: new MeterProvider({ readers: [exporter] }), clock });
  await inTime(
    clock,
    world.start().then(() => world.round()),
  );
  await clock.advanceBy(1_000);
  const { resourceMetrics } = await exporter.collect();
  instruments = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics.map(({ descriptor }) => descriptor.name));
  exported = labelsByMetric(new PrometheusSerializer().serialize(resourceMetrics));
  await inTime(clock, world.close());
});

describe('docs/grafana-dashboard.json', () => {
  it('is compared with a runtime in which every instrument has a value', () => {
    const all = [COUNTERS, GAUGES, HISTOGRAMS, WORKFLOW_METRICS].flatMap((table) => Object.values(table));

    expect(instruments.toSorted()).toEqual(all.map(({ name }) => name).toSorted());
  });

  it('asks for metrics that are exported', () => {
    const unknown = queries.flatMap((query) => metricsIn(query).filter((name) => !exported.has(name)));

    expect(unknown).toEqual([]);
    expect(queries.filter((query) => metricsIn(query).length === 0)).toEqual([]);
  });

  it('asks for labels that these metrics have', () => {
    const unknown = queries.flatMap((query) => {
      const labels = metricsIn(query).flatMap((name) => [...(exported.get(name) ?? []), ...TARGET_LABELS]);
      return labelsIn(query).flatMap((label) => (labels.includes(label) ? [] : [`${query.of}: ${label}`]));
    });

    expect(unknown).toEqual([]);
  });

  it('shows every metric there is', () => {
    const asked = new Set(queries.flatMap(metricsIn).map(familyOf));
    const families = [...exported.keys()].map(familyOf).filter((family) => family !== 'target_info');

    expect(families.filter((family) => !asked.has(family))).toEqual([]);
  });

  it('takes its data source from a variable, and says of each panel what it shows', () => {
    const panels = dashboard.panels.filter(({ type }) => type !== 'row');

    expect(panels.filter(({ datasource }) => datasource?.uid !== '${datasource}')).toEqual([]);
    expect(panels.filter(({ description = '' }) => description === '')).toEqual([]);
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  });
});

/** Moves time until `work` has ended. */
async function inTime(clock: FakeClock, work: Promise<void>): Promise<void> {
  let ended = false;
  const noted = work.finally(() => (ended = true));
  await clock.advanceUntil(() => ended, { stepMs: 10, maxMs: 60_000 });
  await noted;
}

it('docs/observability.md names metrics and labels of Prometheus that are exported', () => {
  const written = [...textOf('docs/observability.md').matchAll(/\b(?:pulsework|messaging)_\w+/g)].map(([word]) => word);
  const known = new Set([...exported].flatMap(([metric, labels]) => [metric, ...labels]));

  expect(written.filter((word) => !known.has(word))).toEqual([]);
  expect(written.length).toBeGreaterThan(10);
});

function labelsByMetric(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const [, name = '', labels = ''] of text.matchAll(/^([a-z]\w*)(?:\{(.*)\})? \S+$/gm)) {
    const known = found.get(name) ?? new Set();
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) known.add(label);
    found.set(name, known);
  }
  return found;
}

/** Of a histogram's parts, the histogram. */
function familyOf(metric: string): string {
  return metric.replace(/_(bucket|sum|count)$/, '');
}
