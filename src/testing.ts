// Entry point `pulsework/testing`: what tests of services and of transports need.
export { FakeClock, settlePromises } from './testing/fake-clock.js';
export { FAULTS, FaultyTransport } from './testing/faulty-transport.js';
export type { CountedCall, Fault, FaultPlan } from './testing/faulty-transport.js';
