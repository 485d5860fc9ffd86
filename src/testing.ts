// Entry point `pulsework/testing`: what tests of services and of transports need.
export { FakeClock, settlePromises } from './testing/fake-clock.js';
