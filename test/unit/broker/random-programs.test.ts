// Random programs against the broker, on each subscription type, with every delivery checked against what was
// published and acknowledged so far.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ConsumerSink, DeliveredEntry } from '../../../src/broker/broker-consumer.js';
import type { ConsumerHandle } from '../../../src/broker/consumer-handle.js';
import { EmbeddedBroker } from '../../../src/broker/embedded-broker.js';
import type { MessageId } from '../../../src/core/message-id.js';
import { formatMessageId } from '../../../src/core/message-id.js';
import type { SubscriptionType } from '../../../src/core/subscription-spec.js';
import { FakeClock, settlePromises } from '../../../src/testing/fake-clock.js';

const TOPIC = 'persistent://public/default/t';
const KEYS = ['A', 'B', 'C', 'k1', 'key1', 'key-107', 'key-411'];

type Step =
  | { readonly kind: 'publish' | 'batch' | 'delayed'; readonly key: number }
  | { readonly kind: 'ack' | 'nack' | 'flow' | 'open' | 'close' | 'advance'; readonly pick: number };

interface Held {
  readonly id: MessageId;
  readonly key: string | undefined;
}

/** Everything that happened, and the rules that no delivery may break. */
class Ledger {
  readonly published = new Set<string>();
  readonly acked = new Set<string>();
  readonly clients: Client[] = [];
  readonly violations: string[] = [];
  /** Only programs without nacks and closes promise rising positions per key. */
  orderPromised = true;
  readonly #lastOfKey = new Map<string, number>();
  readonly type: SubscriptionType;
  readonly clock: FakeClock;

  constructor(type: SubscriptionType, clock: FakeClock) {
    this.type = type;
    this.clock = clock;
  }

  delivered(client: Client, { id, key }: Held, deliverAtMs: number): void {
    const name = formatMessageId(id);
    const multi = this.type === 'shared' || this.type === 'key-shared';
    if (this.acked.has(name)) this.violations.push(`${name} came after it was acknowledged`);
    if (multi && deliverAtMs > this.clock.now()) this.violations.push(`${name} came before it was due`);
    const others = this.clients.filter((other) => other !== client);
    if (multi && others.some((other) => other.held.has(name))) this.violations.push(`${name} is at two consumers`);
    if (this.type === 'key-shared') this.#checkKey(name, id, key, others);
  }

  #checkKey(name: string, id: MessageId, key: string | undefined, others: readonly Client[]): void {
    if (key === undefined) return;
    const elsewhere = others.some((other) => [...other.held.values()].some((held) => held.key === key));
    if (elsewhere) this.violations.push(`${name}: key ${key} is unacknowledged at two consumers`);
    const position = id.ledgerId * 1_000 + id.entryId;
    if (this.orderPromised && position < (this.#lastOfKey.get(key) ?? 0)) {
      this.violations.push(`${name}: an earlier message of key ${key} came after a later one`);
    }
    this.#lastOfKey.set(key, position);
  }
}

class Client implements ConsumerSink {
  readonly held = new Map<string, Held>();
  readonly name: string;
  handle!: ConsumerHandle;
  granted = 0;
  charged = 0;
  readonly #ledger: Ledger;

  constructor(name: string, ledger: Ledger) {
    this.name = name;
    this.#ledger = ledger;
  }

  deliver({ entry, ledgerId, entryId, unacked }: DeliveredEntry): void {
    for (const [index, message] of entry.messages.entries()) {
      if (unacked !== undefined && !unacked.has(index)) continue;
      const { batchSize } = entry;
      const batchIndex = batchSize === 0 ? -1 : index;
      const id = { ledgerId, entryId, partition: -1, batchIndex, batchSize, topic: TOPIC };
      const held = { id, key: message.key as string | undefined };
      this.#ledger.delivered(this, held, message.deliverAtMs ?? 0);
      this.held.set(formatMessageId(id), held);
      this.charged += 1;
    }
  }

  activeChanged(): void {
    // Nothing depends on it here.
  }

  disconnected(): void {
    throw new Error('no program seeks');
  }
}

class Program {
  readonly #clock = new FakeClock();
  readonly #broker: EmbeddedBroker;
  readonly ledger: Ledger;
  readonly #type: SubscriptionType;
  #opened = 0;
  #published = 0;

  constructor(type: SubscriptionType) {
    this.#type = type;
    this.ledger = new Ledger(type, this.#clock);
    this.#broker = new EmbeddedBroker({
      clock: this.#clock,
      maxLedgerEntries: 5,
      roundRobinChunk: 2,
      maxUnackedPerConsumer: 8,
      maxUnackedPerSubscription: 12,
      keySharedLookAheadPerConsumer: 3,
    });
  }

  async run(steps: readonly Step[]): Promise<void> {
    this.#open(5);
    for (const step of steps) {
      await this.#step(step);
      await settlePromises();
      this.#checkPermits();
    }
    await this.#finish();
  }

  async #step(step: Step): Promise<void> {
    switch (step.kind) {
      case 'publish':
      case 'batch':
      case 'delayed':
        return this.#publish(step.kind, KEYS[step.key % KEYS.length]!);
      case 'advance':
        return this.#clock.advanceBy(step.pick * 10);
      case 'open':
        this.#openAnother();
        return;
      case 'ack':
      case 'nack':
      case 'flow':
      case 'close':
        this.#clientStep(step.kind, step.pick);
    }
  }

  async #publish(kind: 'publish' | 'batch' | 'delayed', key: string): Promise<void> {
    this.#published += 1;
    const message = { payload: new Uint8Array([this.#published]), properties: {}, key };
    if (kind === 'batch') {
      const ids = await this.#broker.publishBatch(TOPIC, [message, message, message]);
      for (const id of ids) this.ledger.published.add(formatMessageId(id));
      return;
    }
    const deliverAtMs = kind === 'delayed' ? this.#clock.now() + 35 : undefined;
    const sent = kind === 'delayed' ? { ...message, key: undefined, deliverAtMs } : message;
    this.ledger.published.add(formatMessageId(await this.#broker.publish(TOPIC, sent)));
  }

  #openAnother(): void {
    const limit = this.#type === 'exclusive' ? 1 : 4;
    if (this.ledger.clients.length < limit) this.#open(3);
  }

  #open(permits: number): Client {
    this.#opened += 1;
    const client = new Client(`c${this.#opened}`, this.ledger);
    const request = { topic: TOPIC, subscription: 's', type: this.#type, initialPosition: 'earliest' } as const;
    client.handle = this.#broker.subscribe({ ...request, consumerName: client.name }, client);
    this.ledger.clients.push(client);
    this.#flow(client, permits);
    return client;
  }

  #flow(client: Client, permits: number): void {
    client.granted += permits;
    client.handle.flow(permits);
  }

  #clientStep(kind: 'ack' | 'nack' | 'flow' | 'close', pick: number): void {
    const { clients } = this.ledger;
    const client = clients[pick % Math.max(1, clients.length)];
    if (client === undefined) return;
    const held = [...client.held.values()][pick % Math.max(1, client.held.size)];
    if (kind === 'flow') this.#flow(client, 1 + (pick % 5));
    else if (kind === 'close') this.#close(client);
    else if (held !== undefined && kind === 'ack') this.#ack(client, held.id);
    else if (held !== undefined) this.#nack(client, held.id);
  }

  #ack(client: Client, id: MessageId): void {
    void client.handle.acknowledge([id]);
    this.ledger.acked.add(formatMessageId(id));
    for (const each of this.ledger.clients) each.held.delete(formatMessageId(id));
  }

  #nack(client: Client, id: MessageId): void {
    this.ledger.orderPromised = false;
    // Whole entries come back; on Exclusive and Failover everything does.
    const whole = this.#type === 'exclusive' || this.#type === 'failover';
    for (const [name, held] of client.held) {
      const same = held.id.ledgerId === id.ledgerId && held.id.entryId === id.entryId;
      if (whole || same) client.held.delete(name);
    }
    client.handle.redeliver([id]);
  }

  #close(client: Client): void {
    this.ledger.orderPromised = false;
    client.handle.close();
    this.ledger.clients.splice(this.ledger.clients.indexOf(client), 1);
  }

  #checkPermits(): void {
    const consumers = this.#broker.stats(TOPIC).subscriptions.get('s')?.consumers ?? [];
    for (const client of this.ledger.clients) {
      const stats = consumers.find(({ name }) => name === client.name);
      // While a consumer is blocked, permits that come are parked and show only afterwards.
      if (stats === undefined || stats.blocked || stats.permits === client.granted - client.charged) continue;
      this.ledger.violations.push(`${client.name} has ${stats.permits} permits: ${client.granted} - ${client.charged}`);
    }
  }

  /** Everything that is still there goes to one last consumer, which acknowledges it. */
  async #finish(): Promise<void> {
    for (const client of [...this.ledger.clients]) this.#close(client);
    const last = this.#open(10_000);
    for (let idle = 0; idle < 3;) {
      await this.#clock.advanceBy(500);
      idle = last.held.size === 0 ? idle + 1 : 0;
      for (const { id } of [...last.held.values()]) this.#ack(last, id);
    }
    const stats = this.#broker.stats(TOPIC).subscriptions.get('s');
    const missing = [...this.ledger.published].filter((name) => !this.ledger.acked.has(name));
    if (missing.length > 0) this.ledger.violations.push(`never delivered: ${missing.join(' ')}`);
    if (stats?.backlog !== 0 || stats.unacked !== 0 || stats.replay !== 0 || stats.redeliveries !== 0) {
      this.ledger.violations.push(`not empty at the end: ${JSON.stringify(stats)}`);
    }
  }
}

const onKey = fc.record({ kind: fc.constantFrom('publish', 'publish', 'batch', 'delayed'), key: fc.nat(20) });
const onClient = (...kinds: ('ack' | 'nack' | 'flow' | 'open' | 'close' | 'advance')[]) =>
  fc.record({ kind: fc.constantFrom(...kinds), pick: fc.nat(20) });

async function violationsOf(type: SubscriptionType, steps: readonly Step[]): Promise<readonly string[]> {
  const program = new Program(type);
  await program.run(steps);
  return program.ledger.violations;
}

describe('under random programs', () => {
  it.each(['shared', 'key-shared', 'exclusive', 'failover'] as const)(
    '%s delivers everything until it is acknowledged, nothing afterwards, and permits add up',
    async (type) => {
      const steps = onClient('ack', 'ack', 'ack', 'nack', 'flow', 'flow', 'open', 'close', 'advance');
      const program = fc.array(fc.oneof(onKey, steps), { minLength: 20, maxLength: 90 });
      await fc.assert(
        fc.asyncProperty(program, async (run) => {
          expect(await violationsOf(type, run)).toEqual([]);
        }),
        { numRuns: 100, seed: 20 },
      );
    },
  );

  it('key-shared keeps the order of each key while consumers join and nobody nacks or leaves', async () => {
    const steps = onClient('ack', 'ack', 'ack', 'flow', 'flow', 'open', 'advance');
    const program = fc.array(fc.oneof(onKey, steps), { minLength: 20, maxLength: 90 });
    await fc.assert(
      fc.asyncProperty(program, async (run) => {
        expect(await violationsOf('key-shared', run)).toEqual([]);
      }),
      { numRuns: 100, seed: 21 },
    );
  });
});
