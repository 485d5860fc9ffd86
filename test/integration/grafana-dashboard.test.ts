// Each query of docs/grafana-dashboard.json finds data in a real Prometheus that scrapes a runtime through its health
// endpoint, as docs/observability.md sets it up.
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { expect, onTestFinished, it } from 'vitest';
import { healthEndpoint } from '../../src/plugins.js';
import type { DashboardQuery } from '../support/dashboard-queries.js';
import { dashboardQueries } from '../support/dashboard-queries.js';
import { MetricsWorld } from '../support/metrics-world.js';
import { Prometheus, prometheusMissing } from '../support/prometheus.js';

/** What Grafana puts in for its variables. */
const VARIABLES = { $job: '.*', $handler: '.*', $__rate_interval: '4s', $__range: '1m' };
/** Three times what it took on a busy machine. */
const LIMIT_MS = 40_000;

it('each query of the dashboard returns data from Prometheus', { timeout: LIMIT_MS + 10_000 }, async (context) => {
  const missing = prometheusMissing();
  context.skip(missing !== undefined, missing);
  const { world, target } = await startWorld();
  const prometheus = await Prometheus.start(target);
  onTestFinished(() => prometheus.stop());
  const queries = dashboardQueries();

  await expect
    .poll(
      async () => {
        await world.round();
        const empty: string[] = [];
        for (const query of queries)
          if (!(await hasData(prometheus, query))) empty.push(`${query.of}: ${asAsked(query)}`);
        return empty;
      },
      { timeout: LIMIT_MS, interval: 1_500 },
    )
    .toEqual([]);
  expect(queries.length).toBeGreaterThan(30);
});

async function startWorld(): Promise<{ readonly world: MetricsWorld; readonly target: string }> {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const serializer = new PrometheusSerializer();
  const metrics = async (): Promise<string> => serializer.serialize((await exporter.collect()).resourceMetrics);
  const health = healthEndpoint({ port: 0, metrics });
  const world = new MetricsWorld({ meterProvider: new MeterProvider({ readers: [exporter] }), plugins: [health] });
  onTestFinished(() => world.close());
  await world.start();
  return { world, target: `127.0.0.1:${health.address?.port ?? 0}` };
}

/** A value that is more than 0: everything on the dashboard happens here. */
async function hasData(prometheus: Prometheus, query: DashboardQuery): Promise<boolean> {
  if (query.label !== undefined) return (await prometheus.labelValues(query.label, asAsked(query))).length > 0;
  return (await prometheus.query(asAsked(query))).some((value) => value > 0);
}

function asAsked({ expression }: DashboardQuery): string {
  const asked = Object.entries(VARIABLES).reduce((text, [name, value]) => text.replaceAll(name, value), expression);
  if (asked.includes('$')) throw new Error(`no value for a variable of: ${asked}`);
  return asked;
}
