// The process that relays an outbox dies, or one call fails, at each call to the broker and to the store: nothing is lost, the
// order of each key is kept, and a broker that deduplicates has each message once.
import { describe, expect, it } from 'vitest';
import { Runtime, topic } from 'pulsework';
import { EmbeddedBroker } from 'pulsework/embedded';
import { CrashWorld, FAULTS } from 'pulsework/testing';
import type { Fault } from 'pulsework/testing';
import { MemoryOutboxStore } from '../../../src/stores/memory/memory-outbox-store.js';
import { SyncOutbox } from '../../../src/runtime/outbox/outbox.js';
import { outboxWithFaults } from '../../support/outbox-faults.js';
import { payloadOf } from '../../support/runtime-world.js';

const receipts = topic('receipts');
const KEYS = ['a', 'b', 'c'];
const PER_KEY = 3;
const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

interface Seen {
  readonly key: string;
  readonly i: number;
}

async function relayed(fault: Fault, at: number, deduplication: boolean) {
  const made: { store?: MemoryOutboxStore } = {};
  const world = new CrashWorld(
    { at, fault },
    (transport, cut) =>
      Runtime.start({
        transport,
        handlers: [],
        outbox: outboxWithFaults(made.store ?? expect.unreachable(), transport.clock!, cut),
        logger: quiet,
        random: () => 0.5,
      }),
    () => made.store?.leaderDies(),
  );
  if (deduplication) Object.assign(world, { broker: new EmbeddedBroker({ clock: world.clock, deduplication }) });
  const store = new MemoryOutboxStore(world.clock);
  made.store = store;
  const user = new SyncOutbox(store, world.clock);
  const late = store.begin();
  user.add(late, receipts.message({ key: 'late', i: 0 }));
  // A process that dies in its start never says so.
  world.start().catch(() => undefined);
  await world.clock.advanceBy(1);
  for (let i = 0; i < PER_KEY; i++) {
    const tx = store.begin();
    for (const key of KEYS) user.add(tx, receipts.message({ key, i }, { key }));
    tx.commit();
    await world.clock.advanceBy(1);
  }
  late.commit();
  await world.clock.advanceBy(1_100);
  const { calls } = world;
  await world.pass(45_000);
  await world.drain();
  return { world, store, calls, seen: (await world.read('receipts')).map(payloadOf) as readonly Seen[] };
}

function firstOf(seen: readonly Seen[], key: string): readonly number[] {
  return [...new Set(seen.filter((each) => each.key === key).map(({ i }) => i))];
}

describe.each([true, false])('with deduplication %s at the broker', (deduplication) => {
  it.each(FAULTS)(
    'loses nothing and keeps the order of each key when a call goes wrong: %s',
    async (fault) => {
      const { calls } = await relayed(fault, 0, deduplication);
      const hits = new Set<string>();
      for (let at = 1; at <= calls; at++) {
        const { world, store, seen } = await relayed(fault, at, deduplication);
        // Its first call opens the store: a start that failed is not repeated here.
        if (at === 1 && !world.crashed) continue;
        if (world.hit !== undefined) hits.add(world.hit);
        const where = `${fault} at call ${at} (${String(world.hit)})`;
        for (const key of KEYS) expect([where, firstOf(seen, key)]).toEqual([where, [0, 1, 2]]);
        expect([where, firstOf(seen, 'late')]).toEqual([where, [0]]);
        if (deduplication) expect([where, seen.length]).toEqual([where, KEYS.length * PER_KEY + 1]);
        const left = await store.lead().then((lead) => lead?.summary());
        if (left !== undefined) expect([where, left]).toEqual([where, { waiting: 0, oldestMs: undefined, refused: 0 }]);
      }
      expect([...hits].sort()).toEqual(['publish', 'publisher', 'store']);
    },
    60_000,
  );
});
