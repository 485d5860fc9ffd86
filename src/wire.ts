// Entry point `pulsework/wire`: Pulsar's binary protocol in TypeScript, without a native addon.
export { WireClient } from './transports/wire/wire-client.js';
export type { WireSubscribeOptions } from './transports/wire/wire-client.js';
export { WireTransport, wire } from './transports/wire/wire-transport.js';
export { tokenAuthentication } from './transports/wire/wire-options.js';
export type { Authentication, TlsOptions, WireOptions } from './transports/wire/wire-options.js';
