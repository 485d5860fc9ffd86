// A durable broker that is another process after each restart does what a broker that lives on does: random programs of
// publishes, batches, acknowledgements of every kind, seeks, deletions and restarts, compared after each restart.
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { sqliteStore } from 'pulsework/sqlite';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { EncodedMessage } from '../../../src/core/message.js';
import type { EmbeddedBroker } from '../../../src/embedded.js';
import type { DurableBrokerStore } from '../../../src/ports/broker-store.js';
import { FakeClock } from '../../../src/testing/fake-clock.js';
import { BrokerSide, endlessStore } from '../../support/durable/broker-side.js';
import { sqliteDrivers } from '../../support/metadata-places.js';

const TOPICS = ['a', 'b', 'parts', 'parts-partition-0', 'parts-partition-1', 'parts-partition-2'];
const SUBSCRIPTIONS = ['s', 'half a "name" \u0000 \ud800'];

const at = {
  topic: fc.constantFrom('a', 'a', 'b', 'parts-partition-1'),
  subscription: fc.constantFrom(...SUBSCRIPTIONS),
};
const n = fc.nat(30);
const bytes = fc.uint8Array({ maxLength: 8 });
const message = fc.record({
  payload: fc.oneof(bytes, fc.constant(null)),
  key: fc.oneof(fc.constant(undefined), fc.string({ maxLength: 4 }), bytes),
  orderingKey: fc.oneof(fc.constant(undefined), bytes),
  more: fc.dictionary(fc.constantFrom('__proto__', 'x', 'ключ'), fc.string({ maxLength: 5 })),
  eventTimeMs: fc.oneof(fc.constant(undefined), fc.nat()),
});
const delay = fc.oneof(fc.constant(undefined), fc.nat(100_000));

const kind = <K extends string>(name: K): fc.Arbitrary<K> => fc.constant(name);
const some = (least: number, most: number): fc.Arbitrary<MadeMessage[]> =>
  fc.array(message, { minLength: least, maxLength: most });
const { topic } = at;

const publishing = fc.oneof(
  fc.record({ kind: kind('one-entry'), topic, messages: some(1, 3), delay }),
  fc.record({ kind: kind('burst'), topic, messages: some(2, 8) }),
  fc.record({ kind: kind('again'), topic, back: fc.integer({ min: 1, max: 3 }), messages: some(1, 1) }),
);
const ofSubscription = fc.oneof(
  fc.record({ kind: kind('subscribe'), ...at }),
  fc.record({ kind: kind('acknowledge'), ...at, n, whole: fc.boolean() }),
  fc.record({ kind: kind('acknowledge'), ...at, n, whole: fc.boolean() }),
  fc.record({ kind: kind('acknowledge-up-to'), ...at, n }),
  fc.record({ kind: kind('seek'), ...at, n }),
  fc.record({ kind: kind('rewind'), ...at, to: fc.constantFrom('earliest' as const, 'latest' as const) }),
  fc.record({ kind: kind('unsubscribe'), ...at }),
  fc.record({ kind: kind('expire'), ...at }),
);
const ofBroker = fc.oneof(
  fc.record({ kind: kind('delete-topic'), topic: fc.constantFrom('a', 'parts') }),
  fc.record({ kind: kind('terminate'), topic: fc.constant('b') }),
  fc.record({ kind: kind('grow') }),
  fc.record({ kind: kind('restart'), killed: fc.boolean() }),
  fc.record({ kind: kind('restart'), killed: fc.boolean() }),
);
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ publish: publishing }) },
  { weight: 8, arbitrary: fc.record({ subscription: ofSubscription }) },
  { weight: 3, arbitrary: fc.record({ broker: ofBroker }) },
);
type Made<T> = T extends fc.Arbitrary<infer Value> ? Value : never;
type Step = Made<typeof step>;
type MadeMessage = Made<typeof message>;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pulsework-durable-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Runs a program on both, and compares after each restart. */
class TwoBrokers {
  readonly #clock = new FakeClock(1_800_000_000_000);
  readonly #program: string;
  readonly #driver: string;
  #lives = 0;
  #texts = 0;
  #sequenceId = 0;
  #partitions = 0;
  #endless!: BrokerSide;
  #mortal!: BrokerSide;

  constructor(program: string, driver: string) {
    this.#program = program;
    this.#driver = driver;
  }

  async run(steps: readonly Step[]): Promise<void> {
    this.#endless = await BrokerSide.open(this.#clock, endlessStore());
    this.#mortal = await BrokerSide.open(this.#clock, this.#store());
    try {
      for (const one of steps) await this.#step(one);
      await this.#restart(false);
    } finally {
      await this.#mortal.broker.close();
    }
  }

  #store(): DurableBrokerStore {
    const dir = join(folder, `${this.#program}-${this.#lives}`);
    return sqliteStore({ dir, driver: sqliteDrivers[this.#driver] });
  }

  async #step(one: Step): Promise<void> {
    if ('publish' in one) return this.#publishing(one.publish);
    if ('broker' in one) return this.#ofBroker(one.broker);
    for (const side of [this.#endless, this.#mortal]) await onSubscription(side, one.subscription);
  }

  #publishing(one: Made<typeof publishing>): Promise<void> {
    if (one.kind === 'again') this.#sequenceId = Math.max(0, this.#sequenceId - one.back);
    const messages = one.messages.map((made) => this.#message(made, one.kind === 'one-entry' ? one.delay : undefined));
    return this.#publish(one.topic, one.kind === 'burst' ? messages.map((each) => [each]) : [messages]);
  }

  async #ofBroker(one: Made<typeof ofBroker>): Promise<void> {
    if (one.kind === 'restart') return this.#restart(one.killed);
    if (one.kind === 'grow') this.#partitions = this.#partitions < 2 ? 2 : 3;
    if (one.kind === 'delete-topic' && one.topic === 'parts') this.#partitions = 0;
    for (const { broker } of [this.#endless, this.#mortal]) {
      if (one.kind === 'grow') this.#grow(broker);
      else if (!broker.hasTopic(one.topic) && broker.partitionCount(one.topic) === 0) continue;
      else if (one.kind === 'terminate') broker.terminate(one.topic);
      else broker.deleteTopic(one.topic);
    }
  }

  #grow(broker: EmbeddedBroker): void {
    const before = broker.partitionCount('parts');
    if (before > 0) broker.growPartitions('parts', Math.max(this.#partitions, before));
    else if (!broker.hasTopic('parts-partition-1')) broker.createPartitionedTopic('parts', this.#partitions);
  }

  async #publish(topic: string, entries: readonly (readonly EncodedMessage[])[]): Promise<void> {
    const numbered = entries.map((messages) => {
      const sequenceId = this.#sequenceId;
      this.#sequenceId += messages.length;
      return { messages, sequenceId };
    });
    const results = await Promise.all(
      [this.#endless, this.#mortal].map((side) =>
        Promise.all(numbered.map(({ messages, sequenceId }) => side.publish(topic, messages, sequenceId))),
      ),
    );
    expect(results[1]).toEqual(results[0]);
    await this.#clock.advanceBy(1);
  }

  #message({ more, ...made }: MadeMessage, delayMs?: number): EncodedMessage {
    this.#texts += 1;
    const properties = Object.assign(Object.create(null) as Record<string, string>, more, { text: `m${this.#texts}` });
    return { ...made, properties, deliverAtMs: delayMs === undefined ? undefined : this.#clock.now() + delayMs };
  }

  async #restart(killed: boolean): Promise<void> {
    this.#endless.broker.restart();
    await this.#mortal.broker.written();
    const before = join(folder, `${this.#program}-${this.#lives}`);
    this.#lives += 1;
    const after = join(folder, `${this.#program}-${this.#lives}`);
    // As a process that is killed leaves it: nothing of the end of a broker is done to it.
    if (killed) cpSync(before, after, { recursive: true });
    await this.#mortal.broker.close();
    if (!killed) cpSync(before, after, { recursive: true });
    rmSync(before, { recursive: true });
    this.#mortal = await BrokerSide.open(this.#clock, this.#store());
    const pictures = await Promise.all(
      [this.#endless, this.#mortal].map((side) => side.picture(TOPICS, SUBSCRIPTIONS)),
    );
    expect(pictures[1]).toEqual(pictures[0]);
  }
}

async function onSubscription(side: BrokerSide, one: Made<typeof ofSubscription>): Promise<void> {
  const { topic: name, subscription } = one;
  switch (one.kind) {
    case 'subscribe':
      side.broker.createSubscription(name, subscription);
      return;
    case 'acknowledge':
      return side.acknowledge(name, subscription, one.n, one.whole);
    case 'acknowledge-up-to':
      return side.acknowledgeUpTo(name, subscription, one.n);
    case 'seek':
      return side.seek(name, subscription, one.n);
    case 'rewind':
      return side.rewind(name, subscription, one.to);
    case 'unsubscribe':
      if (side.has(name, subscription)) side.broker.deleteSubscription(name, subscription);
      return;
    case 'expire':
      if (side.has(name, subscription)) side.broker.expireMessages(name, subscription, 5);
  }
}

it.each(Object.keys(sqliteDrivers))(
  'a broker by %s that is another process after each restart is the broker that lives on',
  { timeout: 120_000 },
  async (driver) => {
    let program = 0;
    const steps = fc.array(step, { minLength: 1, maxLength: 60, size: 'max' });
    await fc.assert(
      fc.asyncProperty(steps, (made) => {
        program += 1;
        return new TwoBrokers(String(program), driver).run(made);
      }),
      { numRuns: 80, seed: 20261130 },
    );
  },
);
