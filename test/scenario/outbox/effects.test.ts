// Handlers with effects in virtual time: what they write, the record and the messages are committed together; a repeat finds
// the record and is only acknowledged. With every failing call and every death of the process on the way.
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Delivery, Outcome } from 'pulsework';
import { Runtime, defer, defineHandler, effects, poison, retry, skip, success, topic } from 'pulsework';
import { CrashWorld, FAULTS, memoryOutbox } from 'pulsework/testing';
import type { Fault, MemoryOutbox, MemoryOutboxTransaction } from 'pulsework/testing';
import type { EffectStore } from '../../../src/index.js';
import { World, payloadOf } from '../../support/runtime-world.js';

const orders = topic<{ readonly id: number }>('orders');
const receipts = topic('receipts');
const others = topic('others');
const TTL_MS = 3_600_000;
const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

function worldWithEffects() {
  const world = new World();
  onTestFinished(() => world.end());
  const outbox = memoryOutbox({ clock: world.clock });
  const billing = effects<MemoryOutboxTransaction, { readonly id: number }>({ store: outbox.effects(), ttlMs: TTL_MS });
  const written: number[] = [];
  const handler = (handle: (order: Delivery<{ readonly id: number }>, tx: MemoryOutboxTransaction) => Outcome) =>
    defineHandler({
      name: 'Billing.charge',
      source: orders,
      subscription: 'billing',
      effects: billing,
      publishes: [receipts],
      handle: (order: Delivery<{ readonly id: number }>) => {
        const tx = billing.transaction(order);
        tx.onCommit(() => written.push(order.payload.id));
        outbox.add(tx, receipts.message(order.payload.id));
        return handle(order, tx);
      },
    });
  return { world, outbox, billing, written, handler, sent: async () => (await world.read('receipts')).map(payloadOf) };
}

describe('a handler with effects', () => {
  it.each([
    ['success', success()],
    ['skip', skip('not for me')],
  ])('commits what it wrote, its messages and the record of its %s, and acknowledges', async (_kind, outcome) => {
    const { world, outbox, written, handler, sent } = worldWithEffects();
    await world.start({ handlers: [handler(() => outcome)], outbox });
    await world.publish('orders', { id: 1 });
    await world.clock.advanceBy(2_000);
    expect([written, await sent(), world.backlog('orders', 'billing')]).toEqual([[1], [1], 0]);
    const [message] = await world.read('receipts');
    const { properties } = message!;
    const origin = properties['pulsework-correlation-id'];
    expect(properties['pulsework-message-id']).toBe(`${origin}/Billing.charge/0`);
  });

  it.each([
    ['retry', retry('later')],
    ['poison', poison('never')],
    ['defer', defer(60_000)],
  ])('leaves nothing of a run that ends with %s', async (_kind, outcome) => {
    const { world, outbox, written, handler, sent } = worldWithEffects();
    await world.start({ handlers: [handler(() => outcome)], outbox });
    await world.publish('orders', { id: 1 });
    await world.clock.advanceBy(500);
    expect([written, await sent()]).toEqual([[], []]);
  });

  it('leaves nothing of a run that throws, and runs again', async () => {
    const { world, outbox, written, handler, sent } = worldWithEffects();
    let runs = 0;
    const failsOnce = handler(() => {
      if (++runs === 1) throw new Error('the first time');
      return success();
    });
    await world.start({ handlers: [failsOnce], outbox });
    await world.publish('orders', { id: 1 });
    await world.clock.advanceBy(10_000);
    expect([runs, written, await sent()]).toEqual([2, [1], [1]]);
  });

  it('may not return messages: they would not be in its transaction', async () => {
    const { world, outbox, written, handler } = worldWithEffects();
    await world.start({ handlers: [handler(() => success(receipts.message(1)))], outbox });
    await world.publish('orders', { id: 1 });
    await world.clock.advanceBy(100);
    expect(written).toEqual([]);
    expect(world.reports[0]?.failure?.error).toMatchObject({ code: 'EFFECTS_OUTCOME_REFUSED' });
  });

  it('adds only to topics that it declares', async () => {
    const { world, outbox, written, handler } = worldWithEffects();
    const strays = handler((_order, tx) => {
      outbox.add(tx, others.message(1));
      return success();
    });
    await world.start({ handlers: [strays], outbox });
    await world.publish('orders', { id: 1 });
    await world.clock.advanceBy(100);
    expect(written).toEqual([]);
    expect(world.reports[0]?.failure?.error).toMatchObject({ code: 'PUBLISH_REFUSED' });
  });

  it('has a transaction only in its run', async () => {
    const { world, outbox, billing, handler } = worldWithEffects();
    let kept: Delivery<{ readonly id: number }> | undefined;
    const keeps = handler((order) => {
      kept = order;
      return success();
    });
    await world.start({ handlers: [keeps], outbox });
    await world.publish('orders', { id: 1 });
    await world.clock.advanceBy(100);
    expect(() => billing.transaction(kept!)).toThrow(/inside the handler/);
  });

  it.each([
    [{ batch: { maxMessages: 2 } }, /leave "batch" out/],
    [{ transactional: true }, /leave "effects" out/],
    [{ effects: {} }, /must be made by effects\(\)/],
  ])('is refused with %j', async (more, sentence) => {
    const { world, outbox, billing } = worldWithEffects();
    const wrong = defineHandler({
      ...{ name: 'h', source: orders, subscription: 's', effects: billing },
      ...more,
      handle: () => success(),
    } as never);
    await expect(world.start({ handlers: [wrong], outbox })).rejects.toThrow(sentence);
  });
});

/** Its calls go wrong as those to the broker do. */
function effectsWithFaults(
  inner: EffectStore<MemoryOutboxTransaction>,
  cut: <S extends object>(store: S, methods: readonly (keyof S)[]) => S,
  own: Set<{ rollback(): Promise<void> }>,
): EffectStore<MemoryOutboxTransaction> {
  const begin: typeof inner.begin = async (...args) => {
    const answer = await inner.begin(...args);
    if (answer.kind !== 'begun') return answer;
    own.add(answer.transaction);
    const { tx } = answer.transaction;
    const calls = cut(answer.transaction, ['commit', 'rollback']);
    return {
      kind: 'begun',
      // A rollback never rejects: what did not reach the database ends with the connection.
      transaction: {
        tx,
        commit: (outcome) => calls.commit(outcome),
        rollback: () => calls.rollback().catch(() => answer.transaction.rollback()),
      },
    };
  };
  const calls = cut({ begin }, ['begin']);
  return { name: 'memory', open: () => inner.open(), begin: (...args) => calls.begin(...args) };
}

async function charged(fault: Fault, at: number) {
  const written: number[] = [];
  let outbox!: MemoryOutbox;
  let store!: EffectStore<MemoryOutboxTransaction>;
  const open = new Set<{ rollback(): Promise<void> }>();
  const endConnections = (): void => {
    for (const transaction of open) void transaction.rollback();
  };
  const world = new CrashWorld(
    { at, fault },
    (transport, cut) => {
      const billing = effects<MemoryOutboxTransaction, { readonly id: number }>({
        store: effectsWithFaults(store, cut, open),
        ttlMs: TTL_MS,
      });
      const handler = defineHandler({
        ...{ name: 'Billing.charge', source: orders, subscription: 'billing', effects: billing },
        handle: async (order: Delivery<{ readonly id: number }>) => {
          const tx = billing.transaction(order);
          tx.onCommit(() => written.push(order.payload.id));
          outbox.add(tx, receipts.message(order.payload.id));
          return success();
        },
      });
      return Runtime.start({ transport, handlers: [handler], outbox, logger: quiet, random: () => 0.5 });
    },
    () => {
      endConnections();
      outbox.store.leaderDies();
    },
  );
  outbox = memoryOutbox({ clock: world.clock });
  store = outbox.effects();
  world.start().catch(() => undefined);
  await world.clock.advanceBy(1);
  for (const id of [1, 2, 3])
    await world.broker.publish('orders', { payload: Buffer.from(JSON.stringify({ id })), properties: {} });
  await world.clock.advanceBy(40);
  const { calls } = world;
  // A connection that nobody hears of any more ends by itself.
  await world.clock.advanceBy(35_000);
  endConnections();
  // What a process asked for in its last moment.
  if (world.crashed) outbox.store.leaderDies();
  await world.pass(45_000);
  await world.drain();
  return { world, calls, written, sent: (await world.read('receipts')).map(payloadOf) };
}

describe('the effect of a message is there once, whatever call', () => {
  it.each(FAULTS)('%s', async (fault) => {
    const { calls } = await charged(fault, 0);
    const hits = new Set<string>();
    for (let at = 1; at <= calls; at++) {
      const { world, written, sent } = await charged(fault, at);
      if (world.hit !== undefined) hits.add(world.hit);
      const where = `${fault} at call ${at} (${String(world.hit)})`;
      expect([where, written.toSorted()]).toEqual([where, [1, 2, 3]]);
      expect([where, [...new Set(sent)].toSorted()]).toEqual([where, [1, 2, 3]]);
      expect([where, world.backlog('orders', 'billing')]).toEqual([where, 0]);
    }
    expect([...hits].sort()).toEqual(['acknowledge', 'publish', 'publisher', 'store']);
  });
});
