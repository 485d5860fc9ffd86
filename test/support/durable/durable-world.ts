// A folder with a durable broker that ends and starts again, on virtual time, and a disk that can be full or broken.
import { cpSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrokerOptions, EmbeddedTransport } from 'pulsework/embedded';
import { embedded } from 'pulsework/embedded';
import type { SqliteDatabase, SqliteDatabaseClass } from 'pulsework/sqlite';
import { sqliteStore } from 'pulsework/sqlite';
import type { EncodedMessage, ReceivedMessage } from '../../../src/core/message.js';
import type { MessageId } from '../../../src/core/message-id.js';
import type { SubscriptionSpec } from '../../../src/core/subscription-spec.js';
import type { Subscription } from '../../../src/ports/transport.js';
import { FakeClock, settlePromises } from '../../../src/testing/fake-clock.js';
import { sqliteDrivers } from '../metadata-places.js';

export const NEVER = new AbortController().signal;

interface FullDatabase extends SqliteDatabase {
  pragma(source: string): unknown;
}

export class DurableWorld {
  clock = new FakeClock(1_800_000_000_000);
  readonly #folder = mkdtempSync(join(tmpdir(), 'pulsework-durable-'));
  readonly #options: BrokerOptions;
  #lives = 0;
  #transport: EmbeddedTransport | undefined;
  /** Commits fail as on a full disk. */
  isFull = false;
  /** The next commit fails as on a disk that gives an error. */
  failsOnce = false;
  /** The one that is open. */
  database: FullDatabase | undefined;

  constructor(options: BrokerOptions = {}) {
    this.#options = options;
  }

  get dir(): string {
    return join(this.#folder, `life-${this.#lives}`);
  }

  get transport(): EmbeddedTransport {
    this.#transport ??= embedded({
      store: sqliteStore({ dir: this.dir, driver: this.#driver(), busyTimeoutMs: 50 }),
      options: this.#options,
      clock: this.clock,
    });
    return this.#transport;
  }

  /** As after the end of a process. @param how `killed`: nothing of the end of a broker was done. */
  async restart(how: 'closed' | 'killed' = 'killed'): Promise<void> {
    const before = this.dir;
    this.#lives += 1;
    if (how === 'killed') cpSync(before, this.dir, { recursive: true });
    await this.#transport?.close();
    if (how === 'closed') cpSync(before, this.dir, { recursive: true });
    this.#transport = undefined;
  }

  async end(): Promise<void> {
    await this.#transport?.close();
    rmSync(this.#folder, { recursive: true });
  }

  /** Bytes of all files. */
  get bytes(): number {
    return readdirSync(this.dir).reduce((sum, name) => sum + statSync(join(this.dir, name)).size, 0);
  }

  subscribe(more: Partial<SubscriptionSpec> = {}): Promise<Subscription> {
    const spec = { topics: ['orders'], subscription: 's', type: 'shared' as const, consumerName: 'c', prefetch: 1_000 };
    return this.transport.subscribe({ ...spec, initialPosition: 'earliest', ...more });
  }

  async publish(...texts: readonly string[]): Promise<MessageId[]> {
    const publisher = await this.transport.publisher('orders');
    const publishing = texts.map((text) => publisher.publish(message(text), publisher.nextSequenceId()));
    const ids = await Promise.all(publishing);
    await publisher.close();
    return ids;
  }

  /** All that is not acknowledged: what a consumer that comes now is sent. */
  async backlog(): Promise<string[]> {
    const subscription = await this.subscribe();
    await settlePromises();
    const { unacked = 0 } = this.transport.broker.stats('orders').subscriptions.get('s') ?? {};
    const received = await receive(subscription, unacked);
    await subscription.close();
    return received.map(text);
  }

  #driver(): SqliteDatabaseClass {
    const Driver = sqliteDrivers['libsql'] as new (path: string) => FullDatabase;
    // oxlint-disable-next-line no-this-alias -- the class is made by the store
    const world = this;
    return class implements FullDatabase {
      readonly #database: FullDatabase;

      constructor(path: string) {
        this.#database = new Driver(path);
        world.database = this;
      }

      exec(sql: string): unknown {
        if (world.isFull && sql === 'COMMIT') throw Object.assign(new Error('no room'), { code: 'SQLITE_FULL' });
        if (world.failsOnce && sql === 'COMMIT') {
          world.failsOnce = false;
          throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' });
        }
        return this.#database.exec(sql);
      }

      prepare(sql: string): unknown {
        return this.#database.prepare(sql);
      }

      pragma(source: string): unknown {
        return this.#database.pragma(source);
      }

      close(): unknown {
        return this.#database.close();
      }
    };
  }
}

export function message(content: string, more: Partial<EncodedMessage> = {}): EncodedMessage {
  return { payload: new TextEncoder().encode(content), properties: {}, ...more };
}

export function text({ payload }: ReceivedMessage): string {
  return new TextDecoder().decode(payload ?? undefined);
}

export async function receive(subscription: Subscription, count: number): Promise<ReceivedMessage[]> {
  const received: ReceivedMessage[] = [];
  while (received.length < count) {
    const one = await subscription.receive(NEVER);
    if (one === undefined) throw new Error(`only ${received.length} of ${count} messages came before it was closed`);
    received.push(one);
  }
  return received;
}
