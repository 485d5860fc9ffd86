// Entry point `pulsework/pulsar`: the official client, `pulsar-client`, an optional peer that is loaded when first used.
export { PulsarTransport, pulsar } from './transports/pulsar/pulsar-transport.js';
export type {
  PulsarAuthentication,
  PulsarCompression,
  PulsarOptions,
  PulsarTlsOptions,
} from './transports/pulsar/pulsar-options.js';
export type { OfficialClient, OfficialModule } from './transports/pulsar/official-client.js';
