// Entry point `pulsework/testing`: what tests of services and of transports need.
export { FakeClock, settlePromises } from './testing/fake-clock.js';
export type { AdvanceUntilOptions } from './testing/fake-clock.js';
export { FAULTS, FaultyTransport } from './testing/faulty-transport.js';
export { CrashWorld } from './testing/crash-world.js';
export type { Cut, StartService } from './testing/crash-world.js';
export type { CountedCall, Fault, FaultPlan } from './testing/faulty-transport.js';
export { conformanceCases, runConformanceCase } from './testing/transport-conformance.js';
export { missingFor } from './testing/conformance/conformance-case.js';
export type {
  ConformanceCase,
  ConformanceHarness,
  ConformanceRule,
  HarnessAbility,
  RealTimeLimit,
  SubscriptionFigures,
} from './testing/conformance/conformance-case.js';
export { checkPlugin } from './testing/plugin-check.js';
export type { PluginCheckOptions } from './testing/plugin-conformance/plugin-world.js';
export { ConformanceFailure } from './testing/conformance/expectations.js';
export type { ConformanceWorld } from './testing/conformance/conformance-world.js';
export { TestRuntime, testRuntime } from './testing/test-runtime.js';
export type { TestRuntimeOptions } from './testing/test-runtime-options.js';
export type { TestDeadLetter, TestMessage, TestOutcome } from './testing/test-reading.js';
export type { InjectedFaults } from './broker/broker-faults.js';
export type { FaultName, FaultOptions, FaultRule, FaultTime } from './broker/fault-options.js';
export { RecordingTelemetry } from './testing/recording-telemetry.js';
export type { RecordedPublish, RecordedRun, RecordingTelemetryOptions } from './testing/recording-telemetry.js';
export { AttemptMemory, memoryAttemptStore } from './stores/memory/memory-attempt-store.js';
export type { MemoryAttemptStoreOptions } from './stores/memory/memory-attempt-store.js';
export { WorkflowTest, testWorkflow } from './testing/test-workflow.js';
export type { TestWorkflowOptions, WorkflowStepStubs } from './testing/test-workflow.js';
export { workflowCrashes } from './testing/workflow-crashes.js';
export type { CrashEvent, CrashOptions, CrashScenario, CrashedRun } from './testing/workflow-crashes.js';
export { replayHistory } from './testing/replay-history.js';
export type { ReplayHistoryOptions } from './testing/replay-history.js';
export type { StepRunRecord } from './testing/step-ledger.js';
export { workflowStoreCases } from './testing/workflow-store-cases.js';
export type { WorkflowStoreCase } from './testing/workflow-store-case.js';
export { MemoryOutbox, memoryOutbox } from './testing/memory-outbox.js';
export type { MemoryOutboxTransaction } from './stores/memory/memory-outbox-store.js';
export { memoryMetadataStore } from './stores/memory/memory-metadata-store.js';
