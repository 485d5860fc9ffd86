// An outbox in virtual time: what is committed is relayed, in order per key, once where the broker knows repeats; what the
// broker never takes waits for a person with its key and with nothing else.
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import type { MessageOptions, OutgoingMessage, Telemetry } from 'pulsework';
import { bytesCodec, topic } from 'pulsework';
import { EmbeddedBroker, embedded } from 'pulsework/embedded';
import { memoryOutbox } from 'pulsework/testing';
import { World, payloadOf } from '../../support/runtime-world.js';

const receipts = topic('receipts');
const NONE = { handlers: [] };

function worldWithOutbox() {
  const world = new World();
  onTestFinished(() => world.end());
  const outbox = memoryOutbox({ clock: world.clock });
  const add = (...messages: readonly OutgoingMessage[]): void => {
    const tx = outbox.begin();
    outbox.add(tx, ...messages);
    tx.commit();
  };
  const numbers = async (name = 'receipts') => (await world.read(name)).map(payloadOf);
  return { world, outbox, add, numbers };
}

function receipt(value: unknown, options?: MessageOptions): OutgoingMessage {
  return receipts.message(value, options);
}

describe('an outbox', () => {
  it('refuses a message without a transaction by name', () => {
    const { outbox } = worldWithOutbox();
    expect(() => outbox.add(undefined as never, receipt(1))).toThrow(
      'outbox.add takes your open transaction first, then messages, got undefined',
    );
  });

  it('relays what was committed, at once, and nothing that was rolled back', async () => {
    const { world, outbox, add, numbers } = worldWithOutbox();
    await world.start({ ...NONE, outbox });
    await world.clock.advanceBy(0);
    add(receipt(1, { key: 'a', properties: { colour: 'red' } }));
    const dropped = outbox.begin();
    outbox.add(dropped, receipt(2));
    dropped.rollback();
    await world.clock.advanceBy(1);
    const [message] = await world.read('receipts');
    expect(payloadOf(message!)).toBe(1);
    expect(message).toMatchObject({ key: 'a', properties: { colour: 'red' } });
    expect(await numbers()).toEqual([1]);
  });

  it('relays what was there before it started', async () => {
    const { world, outbox, add, numbers } = worldWithOutbox();
    add(receipt(1), receipt(2));
    await world.start({ ...NONE, outbox });
    await world.clock.advanceBy(1);
    expect(await numbers()).toEqual([1, 2]);
  });

  it('tells observers that what it publishes was recorded earlier', async () => {
    const { world, outbox, add } = worldWithOutbox();
    const relayed: unknown[] = [];
    const telemetry: Telemetry = {
      startPublish: ({ isRelayed }) => void relayed.push(isRelayed),
    };
    add(receipt(1));
    await world.start({ ...NONE, outbox, telemetry });
    await world.clock.advanceBy(1);
    expect(relayed).toEqual([true]);
  });

  it('keeps the order of a key', async () => {
    const { world, outbox, add } = worldWithOutbox();
    await world.start({ ...NONE, outbox });
    for (let i = 0; i < 200; i++) add(receipt({ key: i % 7, i }, { key: `k${i % 7}` }));
    await world.clock.advanceBy(1);
    const seen = (await world.read('receipts')).map(payloadOf) as { readonly key: number; readonly i: number }[];
    expect(seen).toHaveLength(200);
    for (let key = 0; key < 7; key++) {
      const ofKey = seen.filter((each) => each.key === key).map(({ i }) => i);
      expect(ofKey).toEqual(ofKey.toSorted((a, b) => a - b));
    }
  });

  it('does not skip a lower id that is committed late, also at a broker that drops what comes below the last number', async () => {
    const { world, outbox, add, numbers } = worldWithOutbox();
    const broker = new EmbeddedBroker({ clock: world.clock, deduplication: true });
    await world.start({ ...NONE, outbox, transport: embedded({ broker }) });
    const late = outbox.begin();
    outbox.add(late, receipt('late', { key: 'a' }));
    add(receipt('early', { key: 'a' }));
    await world.clock.advanceBy(5_000);
    late.commit();
    await world.clock.advanceBy(1);
    Object.assign(world, { broker });
    expect(await numbers()).toEqual(['early', 'late']);
  });

  it('gives each message an id that is the same on every repeat', async () => {
    const { world, outbox, add } = worldWithOutbox();
    await world.start({ ...NONE, outbox });
    add(receipt(1), receipt(2));
    await world.clock.advanceBy(1);
    const ids = (await world.read('receipts')).map(({ properties }) => properties['pulsework-message-id']);
    expect(ids).toEqual([1, 2].map((id) => `outbox/${outbox.store.outboxId}/${id}`));
  });

  it('keeps delays from the moment when a message was added', async () => {
    const { world, outbox, add } = worldWithOutbox();
    add(receipt(1, { deliverAfterMs: 60_000 }));
    const addedMs = world.clock.now();
    await world.clock.advanceBy(10_000);
    await world.start({ ...NONE, outbox });
    await world.clock.advanceBy(1);
    const [entry] = await world.read('receipts');
    expect(entry?.deliverAtMs).toBe(addedMs + 60_000);
  });

  it('has one relay; another one takes over at once when it is drained, and within a second when it died', async () => {
    const { world, outbox, add, numbers } = worldWithOutbox();
    const first = await world.start({ ...NONE, outbox });
    const second = await world.start({ ...NONE, outbox });
    await world.clock.advanceBy(10);
    expect([first, second].map((runtime) => runtime.outboxHealth()?.role)).toEqual(['leading', 'standby']);
    outbox.store.leaderDies();
    add(receipt(1));
    await world.clock.advanceBy(1_000);
    expect(await numbers()).toEqual([1]);
    const roles = [first, second].map((runtime) => runtime.outboxHealth()?.role);
    expect(roles).toContain('leading');
    await world.drain(roles[0] === 'leading' ? first : second);
    add(receipt(2));
    await world.clock.advanceBy(1_000);
    expect(await numbers()).toEqual([1, 2]);
  });

  it('goes on with other topics while one takes nothing, and says so', async () => {
    const { world, outbox, add, numbers } = worldWithOutbox();
    // Somebody else has it for himself.
    const other = embedded({ broker: world.broker });
    const owner = await other.publisher('persistent://public/default/busy', { accessMode: 'exclusive' });
    const runtime = await world.start({ ...NONE, outbox });
    add(...Array.from({ length: 1_500 }, (_, i) => topic('busy').message(i, { key: `k${i}` })), receipt(1));
    await world.clock.advanceBy(10_000);
    expect(await numbers()).toEqual([1]);
    expect(runtime.outboxHealth()).toMatchObject({
      role: 'leading',
      reason: expect.stringMatching(/publishing to busy/),
    });
    expect(runtime.outboxHealth()?.oldestMs).toBeGreaterThan(8_000);
    await owner.close();
    await world.clock.advanceBy(60_000);
    expect(await numbers('busy')).toHaveLength(1_500);
    expect(runtime.outboxHealth()).toMatchObject({ reason: undefined, claimed: 0, waiting: 0, oldestMs: undefined });
    await other.close();
  });

  it('knows nothing of what waits once another process leads', async () => {
    const { world, outbox, add } = worldWithOutbox();
    const other = embedded({ broker: world.broker });
    await other.publisher('persistent://public/default/busy', { accessMode: 'exclusive' });
    const runtime = await world.start({ ...NONE, outbox });
    add(topic('busy').message(1), topic('busy').message(2));
    await world.clock.advanceBy(10_000);
    expect(runtime.outboxHealth()).toMatchObject({ role: 'leading', waiting: 2, oldestMs: expect.any(Number) });
    outbox.store.leaderDies();
    await outbox.store.lead();
    await world.clock.advanceBy(20_000);
    expect(runtime.outboxHealth()).toMatchObject({ role: 'standby', waiting: 0, refused: 0, oldestMs: undefined });
    await other.close();
  });

  it('refuses at once what can never be published', async () => {
    const { outbox } = worldWithOutbox();
    const tx = outbox.begin();
    const strict = topic('strict', { payload: z.object({ id: z.string() }) });
    expect(() => outbox.add(tx, strict.message({ id: 1 } as never))).toThrow(/does not match its schema/);
    expect(() => outbox.add(tx, topic('a/b').message(1))).toThrow(/its name is wrong/);
    const slow = topic('slow', { payload: z.string().refine(async () => true) });
    expect(() => outbox.add(tx, slow.message('x'))).toThrow(/outbox\.prepare/);
    outbox.add(tx, await outbox.prepare(slow.message('x')));
    tx.commit();
    expect(
      (await outbox.store.lead().then((lead) => lead?.claim({ limit: 9, exceptTopics: [], nowMs: 0 })))?.length,
    ).toBe(1);
  });
});

describe('a message that the broker never takes', () => {
  const big = topic('receipts', { codec: bytesCodec });
  const tooLarge = (key?: string): OutgoingMessage => big.message(new Uint8Array(6 * 1024 * 1024), { key });

  it('waits for a person, and its key behind it; everything else goes on', async () => {
    const { world, outbox, add, numbers } = worldWithOutbox();
    const runtime = await world.start({ ...NONE, outbox });
    add(tooLarge('a'), receipt('behind', { key: 'a' }), receipt('other', { key: 'b' }), receipt('keyless'));
    await world.clock.advanceBy(5_000);
    expect(await numbers()).toEqual(expect.arrayContaining(['other', 'keyless']));
    expect(await numbers()).not.toContain('behind');
    expect(runtime.outboxHealth()).toMatchObject({ role: 'leading', refused: 1, relayed: 2 });
    const [refused] = await outbox.refused();
    expect(refused).toMatchObject({ id: 1, topic: 'receipts', key: '"a"', reason: expect.stringMatching(/bytes/) });
    expect(await outbox.skip(1)).toBe(true);
    await world.clock.advanceBy(1);
    expect(await numbers()).toContain('behind');
    expect([await outbox.refused(), await outbox.skip(1), await outbox.release(1)]).toEqual([[], false, false]);
  });

  it('is published, before those behind it, when it is released and taken now', async () => {
    const { world, outbox, add } = worldWithOutbox();
    let old = true;
    await world.publish('receipts', 0);
    world.broker.terminate('receipts');
    await world.start({ ...NONE, outbox, topics: (name) => (name === 'receipts' && old ? 'receipts' : 'receipts-2') });
    add(receipt(1, { key: 'a' }), receipt(2, { key: 'a' }));
    await world.clock.advanceBy(5_000);
    expect((await outbox.refused()).map(({ id }) => id)).toEqual([1]);
    old = false;
    await outbox.release(1);
    await world.clock.advanceBy(1);
    expect((await world.read('receipts-2')).map(payloadOf)).toEqual([1, 2]);
  });
});
