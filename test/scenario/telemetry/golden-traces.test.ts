// The whole story of a message as a backend shows it: the exported spans of each scenario equal what is written down in
// `expected/`. After an intended change: npx vitest run test/scenario/telemetry/golden-traces.test.ts -u
import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { seconds } from '../../../src/index.js';
import { openTelemetry } from '../../../src/otel.js';
import { OtelSdk } from '../../support/otel-sdk.js';
import { World } from '../../support/runtime-world.js';
import { traceTree } from '../../support/trace-tree.js';
import type { TracedPlace } from './trace-scenarios.js';
import { traceScenarios } from './trace-scenarios.js';

afterEach(() => {
  OtelSdk.unregister();
});

/** The embedded broker in virtual time. */
function embeddedPlace(world: World): TracedPlace {
  return {
    start: ({ handlers }) => world.start({ handlers, telemetry: openTelemetry() }),
    until: (condition) => world.clock.advanceUntil(condition, { maxMs: seconds(60) }),
    drain: async (runtime, deadlineMs) => {
      await world.drain(runtime, deadlineMs);
    },
  };
}

describe('golden traces on the embedded broker', () => {
  it.each(traceScenarios)('$name', async (scenario) => {
    const sdk = new OtelSdk();
    sdk.register();
    const world = new World();
    await scenario.run(embeddedPlace(world));
    await world.end();

    expect(sdk.spans).toHaveLength(sdk.started);
    expect(world.log.filter(({ message }) => /telemetry/i.test(message))).toEqual([]);
    await expect(traceTree(sdk.spans, sdk)).toMatchFileSnapshot(`./expected/${scenario.name}.txt`);
  });

  it('are what log lines about a run lead to', async () => {
    const sdk = new OtelSdk();
    sdk.register();
    const world = new World();
    await traceScenarios.find(({ name }) => name === 'retry-then-success')?.run(embeddedPlace(world));
    await world.end();
    const runs = sdk.spans.filter(({ name }) => name.startsWith('process ')).map((span) => span.spanContext());
    const lines = world.log.filter(({ message }) => message.startsWith('delivery '));

    expect(lines.map(({ fields }) => [fields['trace_id'], fields['span_id']])).toEqual(
      runs.map(({ traceId, spanId }) => [traceId, spanId]),
    );
  });

  it('there is one for each file of expectations', () => {
    const files = readdirSync(new URL('expected/', import.meta.url)).map((file) => file.replace(/\.txt$/, ''));

    expect(files.sort()).toEqual(traceScenarios.map(({ name }) => name).sort());
  });
});
