// `test` once for each outside client, for what must hold with all of them alike: `peer` is the client.
import { test } from './integration-test.js';
import type { PulsarPeer } from './pulsar-peer.js';

interface PeerFixture {
  readonly peer: PulsarPeer;
}

const withJava = test.extend<PeerFixture>({ peer: async ({ java }, use) => use(java) });
const withPython = test.extend<PeerFixture>({ peer: async ({ python }, use) => use(python) });

export const CLIENTS = [
  { client: 'Java', test: withJava },
  { client: 'Python', test: withPython },
] as const;
