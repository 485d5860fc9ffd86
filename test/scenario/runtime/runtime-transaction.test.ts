// `runtime.transaction`: what a function publishes counts together, or not at all.
import { beforeEach, describe, expect, it } from 'vitest';
import type { Runtime, RuntimeTransaction, Transport } from '../../../src/index.js';
import { defineHandler, seconds, success, topic } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { transportWith } from '../../support/transport-with.js';
import { World, payloadOf } from '../../support/runtime-world.js';
import { ScriptedTransactions, answerLost, fails, hangs } from '../../support/scripted-transactions.js';

const out = topic('out');
let world: World;
let scripted: ScriptedTransactions;
beforeEach(() => {
  world = new World();
  scripted = new ScriptedTransactions(embedded({ broker: world.broker }), { scriptsStart: true });
});

async function start(): Promise<Runtime> {
  const idle = defineHandler({ name: 'idle', source: topic('jobs'), subscription: 's', handle: () => success() });
  return world.start({ handlers: [idle], transport: scripted.transport });
}

const outputs = async (): Promise<unknown[]> => (await world.read('out')).map(payloadOf);
const two = async (transaction: RuntimeTransaction): Promise<string> => {
  await transaction.publisher(out).publish('a');
  await transaction.publisher(out).publish('b');
  return 'done';
};

/** Lets a promise settle in virtual time. */
async function settled<T>(promise: Promise<T>, ms = seconds(100)): Promise<T> {
  promise.catch(() => undefined);
  await world.clock.advanceBy(ms);
  return promise;
}

const embeddedWithoutTransactions = ({ broker }: World): Transport =>
  transportWith(embedded({ broker }), { capabilities: new Set() });

const unknown = { code: 'TRANSACTION_OUTCOME_UNKNOWN' };

describe('runtime.transaction', () => {
  it('commits what was published once the function has resolved, and gives what it gave', async () => {
    const runtime = await start();
    expect(await settled(runtime.transaction(two))).toBe('done');
    expect(scripted.asked).toEqual(['t0 begin', 't0 publish out', 't0 publish out', 't0 commit']);
    expect(scripted.timeoutMs).toBe(10_000);
    expect(await outputs()).toEqual(['a', 'b']);
    await world.drain(runtime);
  });

  it('aborts when the function throws, and throws the same', async () => {
    const runtime = await start();
    const error = new Error('changed my mind');
    const failing = runtime.transaction(async (transaction) => {
      await two(transaction);
      throw error;
    });
    await expect(settled(failing)).rejects.toBe(error);
    expect(scripted.asked.slice(-1)).toEqual(['t0 abort']);
    expect(await outputs()).toEqual([]);
    await world.drain(runtime);
  });

  it('aborts where a publish failed, also one that nobody waited for', async () => {
    const runtime = await start();
    scripted.script.publish = [fails()];
    const careless = runtime.transaction(
      (transaction) =>
        void transaction
          .publisher(out)
          .publish('a')
          .catch(() => undefined),
    );
    await expect(settled(careless)).rejects.toMatchObject({
      code: 'TRANSACTION_ABORTED',
      cause: { code: 'CONNECTION_LOST' },
    });
    expect(scripted.asked.slice(-1)).toEqual(['t0 abort']);
    await world.drain(runtime);
  });

  it('waits for what the function did not wait for', async () => {
    const runtime = await start();
    await settled(runtime.transaction((transaction) => void transaction.publisher(out).publish('a')));
    expect(await outputs()).toEqual(['a']);
    await world.drain(runtime);
  });

  it('is over when its time is: the signal aborts, nothing of it counts', async () => {
    const runtime = await start();
    let signal: AbortSignal | undefined;
    const hanging = runtime.transaction(
      async (transaction) => {
        signal = transaction.signal;
        await two(transaction);
        await new Promise(() => undefined);
      },
      { timeoutMs: 2_000 },
    );
    hanging.catch(() => undefined);
    await world.clock.advanceBy(1_999);
    expect(signal?.aborted).toBe(false);
    await world.clock.advanceBy(1);
    await expect(hanging).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
    expect([signal?.aborted, scripted.asked.slice(-1), await outputs()]).toEqual([true, ['t0 abort'], []]);
    await world.drain(runtime);
  });

  it('takes nothing more once it has ended', async () => {
    const runtime = await start();
    let kept: RuntimeTransaction | undefined;
    await settled(runtime.transaction((transaction) => void (kept = transaction)));
    await expect(kept?.publisher(out).publish('late')).rejects.toMatchObject({ code: 'ILLEGAL_STATE' });
    await world.drain(runtime);
  });

  it.each([
    ['fails', fails()],
    ['gives no answer', hangs],
  ])('repeats a commit that %s', async (_, play) => {
    const runtime = await start();
    scripted.script.commit = [play];
    const committing = settled(runtime.transaction(two, { timeoutMs: seconds(60) }));
    expect(await committing).toBe('done');
    expect(await outputs()).toEqual(['a', 'b']);
    await world.drain(runtime);
  });

  it('does not know after a lost answer: TRANSACTION_OUTCOME_UNKNOWN, and no abort is sent that means nothing', async () => {
    const runtime = await start();
    scripted.script.commit = [answerLost()];
    await expect(settled(runtime.transaction(two))).rejects.toMatchObject(unknown);
    expect(await outputs()).toEqual(['a', 'b']);
    await world.drain(runtime);
  });

  it('gives up a commit that never gets an answer when its time is over', async () => {
    const runtime = await start();
    scripted.script.commit = Array.from({ length: 100 }, () => fails());
    await expect(settled(runtime.transaction(two))).rejects.toMatchObject(unknown);
    await world.drain(runtime);
  });

  it('a drain waits for it', async () => {
    const runtime = await start();
    let finish: () => void = () => undefined;
    const committing = runtime.transaction(async (transaction) => {
      await two(transaction);
      await new Promise<void>((resolve) => (finish = resolve));
    });
    await world.clock.advanceBy(0);
    const draining = runtime.drain();
    await world.clock.advanceBy(seconds(5));
    expect(runtime.state).toBe('draining');
    finish();
    await world.clock.advanceBy(seconds(1));
    await committing;
    expect((await draining).complete).toBe(true);
    expect(await outputs()).toEqual(['a', 'b']);
  });

  it('a drain whose deadline passes aborts it', async () => {
    const runtime = await start();
    const hanging = runtime.transaction((transaction) => two(transaction).then(() => new Promise(() => undefined)));
    hanging.catch(() => undefined);
    await world.clock.advanceBy(0);
    expect((await world.drain(runtime, 1_000)).complete).toBe(false);
    await expect(hanging).rejects.toMatchObject({ code: 'DRAIN_DEADLINE_PASSED' });
    expect([scripted.asked.slice(-1), await outputs()]).toEqual([['t0 abort'], []]);
  });

  it('needs a runtime that runs, a transport that can, and options that are right', async () => {
    const runtime = await start();
    await expect(runtime.transaction(two, { timeoutMs: 0 })).rejects.toThrow(
      '"timeoutMs" must be a duration of at least 1 ms',
    );
    await expect(runtime.transaction('x' as never)).rejects.toThrow('"work" must be a function');
    await world.drain(runtime);
    await expect(runtime.transaction(two)).rejects.toMatchObject({ code: 'ILLEGAL_STATE' });
    const plain = new World();
    const without = await plain.start({
      handlers: [defineHandler({ name: 'idle', source: 'jobs', subscription: 's', handle: () => success() })],
      transport: embeddedWithoutTransactions(plain),
    });
    await expect(without.transaction(two)).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    await plain.drain(without);
  });
});
