// What every producer and consumer of one client shares.
import type { ConnectionPool } from './connection-pool.js';
import type { Lookup } from './lookup.js';
import type { PendingBytes } from './pending-message.js';
import type { ResolvedWireOptions } from './wire-options.js';

export interface WireContext {
  readonly options: ResolvedWireOptions;
  readonly pool: ConnectionPool;
  readonly lookup: Lookup;
  /** What all its publishers may have without a receipt. */
  readonly pendingBytes: PendingBytes;
  /** Producer and consumer ids: one counter for the client, so that they are unique on each of its connections. */
  nextId(): number;
}
