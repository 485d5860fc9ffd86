// The program that the campaign `otel-lines` runs with each line of OpenTelemetry, here with the line that is installed.
import { expect, it } from 'vitest';
import { runProgram } from '../../support/run-node.js';

it('traces and measures a retry and a dead letter when the SDK is registered first, and says so when it is not', async () => {
  const run = await runProgram('test/campaign/otel-lines-program.mjs');

  expect(run).toEqual({ stdout: `${process.version}: 13 spans, 20 metrics\n`, stderr: '', exit: 0 });
});
