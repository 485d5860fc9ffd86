// Random programs of clients that acknowledge in transactions and without, leave, come, ask back, and of a broker that
// restarts: whatever happens, a message is acknowledged exactly by what committed or by a plain acknowledgement, everything else
// is still delivered, and no record stays (T-10 to T-17, T-38 to T-41).
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MetadataPendingAckStore } from '../../../../src/broker/transactions/metadata-pending-ack-store.js';
import { PulseworkError } from '../../../../src/core/errors.js';
import type { SubscriptionType } from '../../../../src/core/subscription-spec.js';
import { settlePromises } from '../../../../src/testing/fake-clock.js';
import type { TestClient } from '../broker-kit.js';
import { TestBroker, TOPIC } from '../broker-kit.js';
import { SegmentWorld } from './segment-world.js';

const KINDS = [
  ...(['publish', 'publish', 'batch', 'ackIn', 'ackIn', 'ackIn', 'ackIn', 'ack'] as const),
  ...(['commit', 'commit', 'abort', 'abort', 'nack', 'join', 'leave', 'restart'] as const),
] as const;

interface Step {
  readonly kind: (typeof KINDS)[number];
  readonly pick: number;
}

interface Open {
  readonly key: string;
  readonly texts: Set<string>;
  /** Also what was acknowledged without it since (T-14). */
  readonly recorded: Set<string>;
}

class Program {
  readonly #world: SegmentWorld;
  readonly #broker: TestBroker;
  readonly #type: SubscriptionType;
  readonly #clients: TestClient[] = [];
  readonly #open: Open[] = [];
  readonly #published: string[] = [];
  readonly #batches: string[][] = [];
  readonly #acked = new Set<string>();
  #named = 0;

  constructor(world: SegmentWorld, type: SubscriptionType) {
    this.#world = world;
    this.#type = type;
    const report = (error: Error): never => {
      throw error;
    };
    this.#broker = new TestBroker({
      maxLedgerEntries: 4,
      pendingAcks: { open: async (owner) => new MetadataPendingAckStore(world.records, owner, report) },
    });
  }

  async run(steps: readonly Step[]): Promise<void> {
    await this.#join();
    for (const { kind, pick } of steps) {
      await this.#step(kind, pick);
      this.#checkDelivered(kind);
    }
    await this.#finish();
  }

  /** Nothing that is acknowledged, or is so in a transaction (T-15). */
  #checkDelivered(kind: string): void {
    for (const text of this.#clients.flatMap((client) => client.take().split(' '))) {
      const [message = ''] = text.split('*');
      const isTaken = this.#acked.has(message) || this.#open.some(({ texts }) => texts.has(message));
      expect(isTaken, `${text} was delivered by ${kind}`).toBe(false);
    }
  }

  async #step(kind: Step['kind'], pick: number): Promise<void> {
    switch (kind) {
      case 'publish':
        await this.#broker.publish(this.#message());
        return;
      case 'batch':
        return this.#batch();
      case 'join':
        return this.#join();
      case 'restart':
        this.#restart();
        return this.#join();
      case 'commit':
      case 'abort':
        return this.#end(pick, kind);
      case 'ackIn':
      case 'ack':
      case 'nack':
      case 'leave':
        return this.#asClient(kind, pick);
    }
  }

  async #batch(): Promise<void> {
    const batch = [this.#message(), this.#message(), this.#message()];
    this.#batches.push(batch);
    await this.#broker.batch(...batch);
  }

  /** Of batches that are acknowledged in part, that is forgotten: what is recorded of them is pending again. */
  #restart(): void {
    this.#broker.broker.restart();
    this.#clients.length = 0;
    for (const batch of this.#batches)
      if (batch.some((text) => !this.#acked.has(text))) for (const text of batch) this.#acked.delete(text);
    for (const { texts, recorded } of this.#open)
      for (const text of recorded) if (!this.#acked.has(text)) texts.add(text);
  }

  async #asClient(kind: 'ackIn' | 'ack' | 'nack' | 'leave', pick: number): Promise<void> {
    const client = this.#clients[pick % this.#clients.length]!;
    const texts = [...client.ids.keys()];
    const text = texts[pick % texts.length];
    if (kind === 'leave') {
      if (this.#clients.length === 1) return;
      this.#clients.splice(this.#clients.indexOf(client), 1);
      return client.close();
    }
    if (text === undefined) return;
    if (kind === 'nack') return client.nack(text);
    if (kind === 'ackIn') return this.#ackIn(client, text, pick);
    await client.ack(text);
    this.#acked.add(text);
    for (const { texts: pending } of this.#open) pending.delete(text);
  }

  /** A conflict is one exactly when the message is acknowledged, or in a transaction. */
  async #ackIn(client: TestClient, text: string, pick: number): Promise<void> {
    const transaction = await this.#transaction(pick);
    const isTaken = this.#acked.has(text) || this.#open.some(({ texts }) => texts.has(text));
    const refused = await client.handle.acknowledgeIn(transaction.key, [client.id(text)]).then(
      () => undefined,
      (error: unknown) => (error instanceof PulseworkError ? error.code : String(error)),
    );
    await settlePromises();
    expect(refused, text).toBe(isTaken ? 'TRANSACTION_CONFLICT' : undefined);
    if (isTaken) return;
    transaction.texts.add(text);
    transaction.recorded.add(text);
  }

  async #transaction(pick: number): Promise<Open> {
    const open = this.#open[pick % 4];
    if (open !== undefined) return open;
    this.#named += 1;
    const begun = { key: `1_${this.#named}`, texts: new Set<string>(), recorded: new Set<string>() };
    await this.#world.begin(begun.key);
    this.#open.push(begun);
    return begun;
  }

  async #end(pick: number, end: 'commit' | 'abort'): Promise<void> {
    const at = pick % Math.max(1, this.#open.length);
    const open = this.#open[at];
    if (open === undefined) return;
    this.#open.splice(at, 1);
    if (end === 'commit') for (const text of open.texts) this.#acked.add(text);
    await this.#world.end(open.key, end === 'commit' ? 'COMMITTED' : 'ABORTED');
    await settlePromises();
  }

  async #join(): Promise<void> {
    this.#clients.push(await this.#connect(`c${(this.#named += 1)}`));
  }

  /** Failover waits before it sends something to another one. */
  async #connect(name: string): Promise<TestClient> {
    const client = await this.#broker.connect(this.#type, name);
    await this.#broker.clock.advanceBy(1_000);
    return client;
  }

  #message(): string {
    this.#published.push(`m${this.#published.length}@k${this.#published.length % 3}`);
    return this.#published.at(-1)!;
  }

  async #finish(): Promise<void> {
    while (this.#open.length > 0) await this.#end(0, this.#open.length % 2 === 0 ? 'commit' : 'abort');
    expect(await this.#world.records.acksOf(TOPIC, 's')).toEqual([]);
    for (const client of this.#clients) await client.close();
    const last = await this.#connect('last');
    const left = this.#published.filter((text) => !this.#acked.has(text));
    const received = last.take().split(' ').filter(Boolean);
    expect([...received].sort()).toEqual([...left].sort());
  }
}

it.each<SubscriptionType>(['shared', 'key-shared', 'failover'])(
  'on %s every message is acknowledged by what committed or is delivered, under random programs',
  async (type) => {
    const steps = fc.array(fc.record({ kind: fc.constantFrom(...KINDS), pick: fc.nat(100) }), {
      minLength: 20,
      maxLength: 60,
      size: 'max',
    });
    await fc.assert(
      fc.asyncProperty(steps, async (program) => new Program(await SegmentWorld.with(), type).run(program)),
      { numRuns: 40 },
    );
  },
);
