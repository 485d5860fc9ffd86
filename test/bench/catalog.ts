// All benchmarks, in the order in which they run.
import { attemptStoreBenchmark } from './attempt-store-benchmark.js';
import { brokerBenchmark } from './broker-benchmark.js';
import { durableBenchmark } from './durable-benchmark.js';
import { heldBenchmark } from './held-benchmark.js';
import { orderingBenchmark } from './ordering-benchmark.js';
import { orderingWireBenchmark } from './ordering-wire-benchmark.js';
import { recoveryBenchmark } from './recovery-benchmark.js';
import { runtimeBenchmark } from './runtime-benchmark.js';
import { telemetryBenchmark } from './telemetry-benchmark.js';
import { trackerBenchmark } from './tracker-benchmark.js';
import { transactionalBenchmark, transactionalWireBenchmark } from './transactional-benchmark.js';
import type { Benchmark } from './variant.js';
import { wireConsumeBenchmark } from './wire-consume-benchmark.js';
import { wireProduceBenchmark } from './wire-produce-benchmark.js';
import { workflowBenchmark } from './workflow-benchmark.js';
import { workflowSleepersBenchmark } from './workflow-sleepers-benchmark.js';

export const BENCHMARKS: readonly Benchmark[] = [
  runtimeBenchmark,
  orderingBenchmark,
  telemetryBenchmark,
  heldBenchmark,
  trackerBenchmark,
  brokerBenchmark,
  wireProduceBenchmark,
  wireConsumeBenchmark,
  orderingWireBenchmark,
  transactionalBenchmark,
  transactionalWireBenchmark,
  attemptStoreBenchmark,
  durableBenchmark,
  recoveryBenchmark,
  workflowBenchmark,
  workflowSleepersBenchmark,
];
