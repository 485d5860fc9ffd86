// What the embedded broker does with many messages, each operation with the steps that it takes: for each message, or for
// one call where a call is to cost the same however much there is.
import { settlePromises } from '../../../src/testing/fake-clock.js';
import type { ScaleClient } from './scale-world.js';
import { ScaleWorld, TOPIC, shuffled } from './scale-world.js';

export interface ScaleOperation {
  readonly name: string;
  readonly per: 'message' | 'call';
  /** @returns the steps taken for each message, or for the call. @param steps taken since its last call */
  run(messages: number, steps: () => number): Promise<number>;
}

const KEYS = 10_000;
/** Where a step for each key that is held or waits is right, there must be the same number of them at each size. */
const FEW_KEYS = 100;
const CONSUMERS = 50;
const TOPICS = 1_000;
/** Different delays: each is a timer, and a timer of the test's clock is a turn of the event loop. */
const DELAYS = 500;

/** With everything held by one consumer. */
async function held(messages: number, type: 'shared' | 'exclusive'): Promise<[ScaleWorld, ScaleClient]> {
  const world = new ScaleWorld();
  await world.publish(messages);
  return [world, await world.connect(type)];
}

async function keySharedConsumers(world: ScaleWorld): Promise<ScaleClient[]> {
  const clients: ScaleClient[] = [];
  for (let c = 0; c < CONSUMERS; c++) clients.push(await world.connect('key-shared', `c${c}`));
  return clients;
}

/** With everything held by 50 consumers. */
async function heldByKey(messages: number): Promise<[ScaleWorld, ScaleClient[]]> {
  const world = new ScaleWorld();
  const clients = await keySharedConsumers(world);
  await world.publish(messages, (i) => ({ key: `key-${i % FEW_KEYS}` }));
  return [world, clients];
}

const perMessage: Readonly<Record<string, ScaleOperation['run']>> = {
  async publish(messages, steps) {
    const world = new ScaleWorld();
    steps();
    await world.publish(messages);
    return steps() / messages;
  },
  async 'dispatch a backlog'(messages, steps) {
    const world = new ScaleWorld();
    await world.publish(messages);
    steps();
    const client = await world.connect('shared');
    if (client.ids.length !== messages) throw new Error(`${client.ids.length} came`);
    return steps() / messages;
  },
  async 'acknowledge in order'(messages, steps) {
    const [world, client] = await held(messages, 'shared');
    steps();
    await world.acknowledge(client, client.ids);
    world.checkBacklog(0);
    return steps() / messages;
  },
  async 'acknowledge in random order'(messages, steps) {
    const [world, client] = await held(messages, 'shared');
    steps();
    await world.acknowledge(client, shuffled(client.ids));
    world.checkBacklog(0);
    return steps() / messages;
  },
  async 'acknowledge every second one from the end, then the others'(messages, steps) {
    const [world, client] = await held(messages, 'shared');
    const backwards = client.ids.toReversed();
    steps();
    await world.acknowledge(
      client,
      backwards.filter((_, i) => i % 2 === 0),
    );
    await world.acknowledge(
      client,
      backwards.filter((_, i) => i % 2 === 1),
    );
    world.checkBacklog(0);
    return steps() / messages;
  },
  async 'ask back in random order, and send again'(messages, steps) {
    const [, client] = await held(messages, 'shared');
    const ids = shuffled(client.takeIds());
    steps();
    for (const id of ids) client.handle.redeliver([id]);
    await settlePromises();
    if (client.ids.length !== messages) throw new Error(`${client.ids.length} came again`);
    return steps() / messages;
  },
  async 'acknowledge cumulatively one by one'(messages, steps) {
    const [world, client] = await held(messages, 'exclusive');
    steps();
    for (const id of client.ids) void client.handle.acknowledgeCumulative(id);
    world.checkBacklog(0);
    return steps() / messages;
  },
  async 'acknowledge all of them cumulatively'(messages, steps) {
    const [world, client] = await held(messages, 'exclusive');
    steps();
    void client.handle.acknowledgeCumulative(client.ids.at(-1)!);
    world.checkBacklog(0);
    return steps() / messages;
  },
  async 'expire all that are held or wait'(messages, steps) {
    const world = new ScaleWorld({ messageTtlMs: 1 });
    await world.publish(messages);
    const clients = [await world.connect('key-shared', 'a'), await world.connect('key-shared', 'b')];
    steps();
    await world.clock.advanceBy(300_000);
    world.checkBacklog(0);
    if (clients.every(({ ids }) => ids.length < messages)) throw new Error('nobody held all');
    return steps() / messages;
  },
  async 'Key_Shared: publish, dispatch, acknowledge, 10,000 keys, 50 consumers'(messages, steps) {
    const world = new ScaleWorld();
    const clients = await keySharedConsumers(world);
    steps();
    await world.publish(messages, (i) => ({ key: `key-${i % KEYS}` }));
    for (const client of clients) await world.acknowledge(client, client.ids);
    world.checkBacklog(0);
    return steps() / messages;
  },
  async 'Key_Shared: dispatch beside a consumer that takes nothing'(messages, steps) {
    const world = new ScaleWorld({
      keySharedLookAheadPerConsumer: messages,
      keySharedLookAheadPerSubscription: messages,
    });
    const clients = await keySharedConsumers(world);
    const idle = clients[7]!;
    idle.handle.close();
    const request = { topic: TOPIC, subscription: 's', type: 'key-shared', initialPosition: 'earliest' } as const;
    idle.handle = world.broker.subscribe({ ...request, consumerName: 'c7' }, idle);
    steps();
    await world.publish(messages, (i) => ({ key: `key-${i % KEYS}` }));
    idle.handle.flow(messages);
    await settlePromises();
    return steps() / messages;
  },
  async 'Key_Shared: a consumer leaves, for each message that it held'(messages, steps) {
    const [, clients] = await heldByKey(messages);
    const leaving = clients.toSorted((a, b) => b.ids.length - a.ids.length)[0]!;
    steps();
    leaving.handle.close();
    await settlePromises();
    return steps() / leaving.ids.length;
  },
  async 'Key_Shared: fail the first of each key, return the rest, ask back, acknowledge'(messages, steps) {
    const world = new ScaleWorld({ keySharedMaxRetryingPositions: messages });
    const keys = messages / 10;
    await world.publish(messages, (i) => ({ key: `key-${i % keys}` }));
    const client = await world.connect('key-shared');
    const ids = client.takeIds();
    const firsts = ids.slice(0, keys);
    steps();
    client.handle.negativeAcknowledgeOrdered(firsts, ids.slice(keys));
    await settlePromises();
    if (client.ids.length > 0) throw new Error('one came before its key was free');
    client.handle.redeliver(firsts);
    await settlePromises();
    // In turns: keys that share a hash wait for each other.
    for (let got = client.takeIds(); got.length > 0; got = client.takeIds()) await world.acknowledge(client, got);
    world.checkBacklog(0);
    return steps() / messages;
  },
  async 'delay, release, dispatch'(messages, steps) {
    const world = new ScaleWorld();
    const client = await world.connect('shared');
    const now = world.clock.now();
    const delaysMs = shuffled(Array.from({ length: messages }, (_, i) => 1 + (i % DELAYS)));
    steps();
    await world.publish(messages, (i) => ({ deliverAtMs: now + delaysMs[i]! }));
    if (client.ids.length > 0) throw new Error('one came early');
    await world.clock.advanceBy(DELAYS);
    if (client.ids.length !== messages) throw new Error(`${client.ids.length} came`);
    return steps() / messages;
  },
  async 'publish, dispatch, acknowledge on 1,000 topics'(messages, steps) {
    const world = new ScaleWorld();
    const clients: ScaleClient[] = [];
    for (let t = 0; t < TOPICS; t++) clients.push(await world.connect('shared', 'c', `${TOPIC}-${t}`));
    steps();
    for (let i = 0; i < messages; i++) world.publishTo(`${TOPIC}-${i % TOPICS}`);
    await settlePromises();
    for (const client of clients) await world.acknowledge(client, client.ids);
    return steps() / messages;
  },
  async 'the last consumer leaves and another reads past what is acknowledged'(messages, steps) {
    const [world, client] = await held(messages, 'shared');
    await world.acknowledge(
      client,
      client.ids.filter((_, i) => i % 10 > 0),
    );
    steps();
    client.handle.close();
    const next = await world.connect('shared');
    return steps() / next.ids.length;
  },
};

const perCall: Readonly<Record<string, ScaleOperation['run']>> = {
  async 'Exclusive: ask back the first one, the rest being acknowledged'(messages, steps) {
    const [world, client] = await held(messages, 'exclusive');
    const [first, ...rest] = client.takeIds();
    await world.acknowledge(client, rest);
    steps();
    client.handle.redeliver([first!]);
    await settlePromises();
    if (client.ids.length !== 1) throw new Error(`${client.ids.length} came again`);
    return steps();
  },
  async 'Key_Shared: a consumer joins 50 that hold everything'(messages, steps) {
    const [world] = await heldByKey(messages);
    steps();
    await world.connect('key-shared', 'one more');
    return steps();
  },
  async 'Key_Shared: the first of a key fails again, with everything waiting behind it'(messages, steps) {
    const world = new ScaleWorld();
    await world.publish(messages, () => ({ key: 'key' }));
    const client = await world.connect('key-shared');
    const [first, ...rest] = client.takeIds();
    client.handle.negativeAcknowledgeOrdered([first!], rest);
    await settlePromises();
    steps();
    client.handle.redeliver([first!]);
    await settlePromises();
    client.handle.negativeAcknowledgeOrdered([first!], []);
    await settlePromises();
    if (client.ids.length !== 1) throw new Error(`${client.ids.length} came again`);
    return steps();
  },
  async 'seek to a message'(messages, steps) {
    const world = new ScaleWorld();
    await world.publish(messages);
    const [a] = [await world.connect('shared', 'a'), await world.connect('shared', 'b')];
    const id = a.ids[Math.floor(a.ids.length / 2)]!;
    steps();
    a.handle.seek(id);
    await settlePromises();
    return steps();
  },
  async 'seek to a message that is not there'(messages, steps) {
    const world = new ScaleWorld({ maxLedgerEntries: 100 });
    await world.publish(messages);
    const client = await world.connect('shared');
    const id = { ...client.ids[0]!, ledgerId: client.ids[0]!.ledgerId - 1 };
    steps();
    client.handle.seek(id);
    await settlePromises();
    return steps();
  },
  async 'seek to a time'(messages, steps) {
    const world = new ScaleWorld();
    await world.publish(messages / 2);
    await world.clock.advanceBy(1_000);
    const to = new Date(world.clock.now());
    await world.publish(messages / 2);
    const client = await world.connect('shared');
    steps();
    client.handle.seek(to);
    await settlePromises();
    world.checkBacklog(messages / 2);
    return steps();
  },
  async 'statistics, with everything held, waiting or delayed'(messages, steps) {
    const world = new ScaleWorld();
    const due = world.clock.now() + 1_000;
    await world.publish(messages, (i) => ({ key: `key-${i % FEW_KEYS}`, deliverAtMs: i % 3 === 0 ? due : undefined }));
    const client = await world.connect('key-shared');
    client.handle.redeliver(client.ids.filter((_, i) => i % 2 === 0));
    steps();
    world.broker.stats(TOPIC);
    return steps();
  },
  async unload(messages, steps) {
    const [world] = await held(messages, 'shared');
    steps();
    world.broker.unload(TOPIC);
    await settlePromises();
    return steps();
  },
};

const named = (per: ScaleOperation['per'], runs: Readonly<Record<string, ScaleOperation['run']>>): ScaleOperation[] =>
  Object.entries(runs).map(([name, run]) => ({ name, per, run }));

export const SCALE_OPERATIONS: readonly ScaleOperation[] = [...named('message', perMessage), ...named('call', perCall)];
