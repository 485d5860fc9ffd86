// A transport with some of its methods replaced; its clock is not passed on, so that the runtime's own counts.
import type { Transport } from '../../src/index.js';

export function transportWith(inner: Transport, change: Partial<Transport>): Transport {
  return {
    name: inner.name,
    capabilities: inner.capabilities,
    maxMessageBytes: inner.maxMessageBytes,
    subscribe: (spec) => inner.subscribe(spec),
    publisher: (topic, options) => inner.publisher(topic, options),
    close: () => inner.close(),
    ...change,
  };
}
