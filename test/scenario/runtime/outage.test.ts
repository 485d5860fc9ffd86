// Outage mode: a dependency that is down pauses every subscription that needs it, costs no attempt and no dead letter,
// is probed by one delivery, and is not overrun when it is back.
import { describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome } from '../../../src/index.js';
import { defineHandler, dependencyDown, minutes, on, poison, seconds, success, topic } from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

class BankDown extends Error {}

function handler(
  name: string,
  handle: (delivery: Delivery) => Outcome | Promise<Outcome>,
  more: Partial<HandlerOptions> = {},
) {
  return defineHandler({
    name,
    source: topic(`${name}-jobs`),
    subscription: 'workers',
    outage: [{ dependency: 'bank', errors: [BankDown], retryAfterMs: seconds(10) }],
    redelivery: { maxDeliveries: 2 },
    ...more,
    handle,
  });
}

/** A bank that is down until `backMs`, and who asked it when. */
class Bank {
  readonly calls: { readonly atMs: number; readonly by: string; readonly attempt: number }[] = [];
  readonly world = new World();
  readonly #startMs = this.world.clock.now();
  backMs = seconds(100);

  readonly ask = ({ handler: by, attempt }: Delivery): Outcome => {
    const atMs = this.world.clock.now() - this.#startMs;
    this.calls.push({ atMs, by, attempt });
    if (atMs < this.backMs) throw new BankDown('no connection');
    return success();
  };
}

describe('a dependency that is down', () => {
  it('is asked again only by its probe, after 10 s, then doubling up to a minute; nothing is spent or dead-lettered', async () => {
    const bank = new Bank();
    bank.backMs = minutes(5);
    await bank.world.start({ handlers: [handler('pay', bank.ask, { concurrency: 1 })] });
    for (const value of [1, 2, 3, 4, 5]) await bank.world.publish('pay-jobs', value);
    await bank.world.clock.advanceBy(minutes(10));

    const at = bank.calls.map(({ atMs }) => atMs / 1_000);
    expect(at.slice(0, 5)).toEqual([0, 10, 30, 70, 130]);
    expect(bank.calls.every(({ attempt }) => attempt === 1)).toBe(true);
    expect(bank.world.backlog('pay-jobs', 'workers')).toBe(0);
    expect(await bank.world.deadLetters('pay-jobs', 'workers')).toEqual([]);
    await bank.world.end();
  });

  it('pauses every subscription of the runtime that names it, and no other', async () => {
    const bank = new Bank();
    const others: unknown[] = [];
    const free = handler('free', ({ payload }) => (others.push(payload), success()), { outage: [] });
    const runtime = await bank.world.start({ handlers: [handler('pay', bank.ask), handler('refund', bank.ask), free] });
    await bank.world.publish('pay-jobs', 1);
    await bank.world.clock.advanceBy(100);
    await bank.world.publish('refund-jobs', 1);
    await bank.world.publish('free-jobs', 1);
    await bank.world.clock.advanceBy(seconds(50));

    expect(runtime.health().map(({ dependenciesDown }) => dependenciesDown)).toEqual([['bank'], ['bank'], []]);
    expect(bank.calls.filter(({ by }) => by === 'refund')).toEqual([]);
    expect(others).toEqual([1]);
    await bank.world.clock.advanceBy(minutes(5));
    expect(bank.calls.filter(({ by }) => by === 'refund')).toHaveLength(1);
    expect(runtime.health().flatMap(({ dependenciesDown }) => dependenciesDown)).toEqual([]);
    expect([bank.world.backlog('pay-jobs', 'workers'), bank.world.backlog('refund-jobs', 'workers')]).toEqual([0, 0]);
    await bank.world.end();
  });

  it('pauses a subscription whose rule names no errors too: what it throws is never an outage', async () => {
    const bank = new Bank();
    const along: number[] = [];
    const startMs = bank.world.clock.now();
    const thrown = { attempts: 0 };
    const waits = handler(
      'along',
      () => {
        along.push((bank.world.clock.now() - startMs) / 1_000);
        if (thrown.attempts++ === 0) throw new BankDown('thrown by one whose rule has no errors');
        return success();
      },
      { outage: [{ dependency: 'bank' }] },
    );
    await bank.world.start({ handlers: [handler('pay', bank.ask), waits] });
    await bank.world.publish('pay-jobs', 1);
    await bank.world.clock.advanceBy(1);
    await bank.world.publish('along-jobs', 2);
    await bank.world.clock.advanceBy(minutes(10));

    const backAt = (bank.calls.at(-1)?.atMs ?? 0) / 1_000;
    expect(along).toEqual([backAt, backAt + 1]);
    await bank.world.end();
  });

  it('that is back is asked by one, then two, four, eight at a time', async () => {
    const world = new World();
    let down = true;
    let running = 0;
    const beside: number[] = [];
    const handle = async (): Promise<Outcome> => {
      if (down) return dependencyDown('bank');
      beside.push(++running);
      await new Promise<void>((resolve) => world.clock.setTimer(100, resolve));
      running -= 1;
      return success();
    };
    await world.start({ handlers: [handler('pay', handle, { concurrency: 8 })] });
    for (let value = 0; value < 40; value++) await world.publish('pay-jobs', value);
    await world.clock.advanceBy(50);
    down = false;
    await world.clock.advanceBy(minutes(5));

    expect(Math.max(...beside.slice(0, 1))).toBe(1);
    expect(Math.max(...beside.slice(0, 3))).toBeLessThanOrEqual(2);
    expect(Math.max(...beside)).toBe(8);
    expect(world.backlog('pay-jobs', 'workers')).toBe(0);
    await world.end();
  });

  it('is one of two: the subscription goes on when both are back', async () => {
    const world = new World();
    const down = new Set(['bank', 'mail']);
    const handle = ({ payload }: Delivery): Outcome => {
      const needed = payload as string;
      return down.has(needed) ? dependencyDown(needed, { retryAfterMs: seconds(1) }) : success();
    };
    const runtime = await world.start({ handlers: [handler('pay', handle)] });
    for (const value of ['bank', 'mail', 'bank', 'mail', 'nothing']) await world.publish('pay-jobs', value);
    await world.clock.advanceBy(seconds(5));
    expect(runtime.health()[0]?.pausedBy).toEqual(['outage']);
    down.delete('bank');
    await world.clock.advanceBy(minutes(3));
    expect(runtime.health()[0]?.dependenciesDown).toEqual(['mail']);
    down.delete('mail');
    await world.clock.advanceBy(minutes(3));

    expect(runtime.health()[0]?.dependenciesDown).toEqual([]);
    expect(world.backlog('pay-jobs', 'workers')).toBe(0);
    await world.end();
  });

  it('for one key only keeps that key waiting, the others go on', async () => {
    const world = new World();
    let down = true;
    const done: unknown[] = [];
    const handle = ({ key, payload }: Delivery): Outcome => {
      if (down && key === 'k') return dependencyDown('endpoint of k', { scope: 'key', retryAfterMs: 1_000 });
      done.push(payload);
      return success();
    };
    const runtime = await world.start({ handlers: [handler('pay', handle, { type: 'key-shared', ordering: 'key' })] });
    await world.publish('pay-jobs', 'k1', { key: 'k' });
    await world.publish('pay-jobs', 'k2', { key: 'k' });
    await world.publish('pay-jobs', 'o1', { key: 'o' });
    await world.clock.advanceBy(seconds(5));
    expect([done, runtime.health()[0]?.state]).toEqual([['o1'], 'running']);
    down = false;
    await world.clock.advanceBy(minutes(2));

    expect(done).toEqual(['o1', 'k1', 'k2']);
    await world.end();
  });

  it('"scope: key" without ordering is a failed run that says why', async () => {
    const world = new World();
    await world.start({ handlers: [handler('pay', () => dependencyDown('x', { scope: 'key' }))] });
    await world.publish('pay-jobs', 1);
    await world.clock.advanceBy(minutes(1));

    const [letter] = await world.deadLetters('pay-jobs', 'workers');
    expect(letter?.properties['pulsework-reason']).toContain('"scope: key" needs "ordering"');
    await world.end();
  });

  it('is not what an error means that "onError" names', async () => {
    const world = new World();
    const rules = { onError: [on(BankDown, poison)] };
    await world.start({
      handlers: [
        handler(
          'pay',
          () => {
            throw new BankDown('x');
          },
          rules,
        ),
      ],
    });
    await world.publish('pay-jobs', 1);
    await world.clock.advanceBy(10);

    expect(await world.deadLetters('pay-jobs', 'workers')).toHaveLength(1);
    await world.end();
  });

  it.each([
    [[{ dependency: '', errors: [BankDown] }], /"outage\[0\].dependency" must be a text that is not empty/],
    [[{ dependency: 'x', errors: [Error, 'x'] }], /"outage\[0\].errors" takes error classes, item 1 is "x"/],
    [[{ dependency: 'x', errors: [BankDown], after: 1 }], /unknown option "outage\[0\].after"/],
    [[{ errors: [BankDown] }], /"outage\[0\].dependency" is missing; it must be the name of what may be down/],
    ['bank', /"outage" must be a list/],
  ])('with the rule %j is refused at start', async (outage, reason) => {
    const world = new World();
    const options = { outage } as unknown as Partial<HandlerOptions>;
    await expect(world.start({ handlers: [handler('pay', () => success(), options)] })).rejects.toThrow(reason);
  });
});
