// What user code can hand over or throw must not end the process, nor lose a slot of the subscription.
import { beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome, RuntimeOptions } from '../../../src/index.js';
import { defineHandler, on, poison, retry, seconds, success, topic } from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';
import { unhandledDuring } from '../../support/unhandled.js';

let world: World;
beforeEach(() => void (world = new World()));

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function revokedError(): Error {
  const { proxy, revoke } = Proxy.revocable(new Error('x'), {});
  revoke();
  return proxy;
}

type Handle = (delivery: Delivery) => unknown;

/** One bad message first, then a good one through one slot: what is unhandled, and whether the good one is handled. */
async function survive(bad: Handle, options: HandlerOptions = {}, runtime: Partial<RuntimeOptions> = {}) {
  const handled: unknown[] = [];
  const unhandled = await unhandledDuring(async () => {
    await world.start({
      handlers: [
        defineHandler({
          name: 'h',
          source: topic('orders'),
          subscription: 's',
          concurrency: 1,
          redelivery: { maxDeliveries: 1 },
          ...options,
          handle: (d) => {
            if (d.payload === 'bad') return bad(d) as Outcome;
            handled.push(d.payload);
            return success();
          },
        }),
      ],
      ...runtime,
    });
    await world.publish('orders', 'bad');
    await world.publish('orders', 'good');
    await world.clock.advanceBy(seconds(300));
  });
  return { unhandled, handled, backlog: world.backlog('orders', 's') };
}

const SURVIVED = { unhandled: [], handled: ['good'], backlog: 0 };

describe('a handler', () => {
  const throwingThen = (): object => ({
    get then(): never {
      throw new Error('then');
    },
  });
  const throwValue = (value: unknown) => (): never => {
    throw value;
  };
  it.each<[string, Handle]>([
    ['returns an object whose then throws when it is read', throwingThen],
    ['returns a revoked proxy', revoked],
    ['resolves with a revoked proxy', () => new Promise((resolve) => queueMicrotask(() => resolve([revoked()])))],
    ['throws a revoked proxy', throwValue(revoked())],
    ['rejects with a revoked proxy', () => Promise.reject(revokedError())],
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- what careless code does
    ['rejects with undefined', () => Promise.reject(undefined)],
    ['throws a revoked proxy of an error', throwValue(revokedError())],
    ['is poison by a revoked proxy of an error', () => poison(new Error('outer', { cause: revokedError() }))],
    ['throws an error whose cause is a revoked proxy', throwValue(new Error('outer', { cause: revoked() }))],
    [
      'returns a thenable that answers twice',
      () => ({
        then: (ok: (v: unknown) => void) => {
          ok(success());
          ok(retry());
        },
      }),
    ],
    ['returns an outcome of a kind from another version', () => ({ ...success(), kind: 'from-the-future' })],
    ['returns a forged success without messages', () => ({ ...success(), messages: undefined })],
    ['returns a success with a message that is none', () => success(null as never)],
    ['returns an outcome with a failure that is none', () => ({ ...poison('x'), failure: undefined })],
  ])('that %s costs a failed run, not the process or the slot', async (_, bad) => {
    expect(await survive(bad)).toEqual(SURVIVED);
  });

  it('with a rule for something that is no class is refused, by on() or at start', async () => {
    // `instanceof` throws on an arrow function: no message may meet such a rule.
    expect(() => on((() => undefined) as never, () => poison('never'))).toThrow(/takes an error class first/);
    const forged = { errorClass: () => undefined, outcome: () => poison('never') } as never;
    const starting = survive(() => Promise.reject(new Error('x')), { onError: [forged] });
    await expect(starting).rejects.toMatchObject({ code: 'CONFIGURATION_INVALID' });
  });

  it('with an async rule that rejects does not end the process', async () => {
    const rule = on(Error, (async () => Promise.reject(new Error('late'))) as never);
    expect(await survive(() => Promise.reject(new Error('x')), { onError: [rule] })).toEqual(SURVIVED);
  });

  it('with an async backoff that rejects does not end the process', async () => {
    const backoff = (async () => Promise.reject(new Error('late'))) as never;
    const { unhandled } = await survive(() => retry(), { redelivery: { maxDeliveries: 2, backoff } });
    expect(unhandled).toEqual([]);
  });

  it('whose codec decodes asynchronously and fails has an undecodable message, not a dead process', async () => {
    const codec = { name: 'odd', encode: () => new Uint8Array(), decode: () => Promise.reject(new Error('late')) };
    const unhandled = await unhandledDuring(async () => {
      await world.start({
        handlers: [
          defineHandler({
            name: 'h',
            source: topic('orders', {
              codec,
              payload: { '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }) } },
            }),
            subscription: 's',
            handle: () => success(),
          }),
        ],
      });
      await world.publish('orders', 'bad');
      await world.clock.advanceBy(seconds(1));
    });
    expect(unhandled).toEqual([]);
    const [letter] = await world.deadLetters('orders', 's');
    expect(letter?.properties['pulsework-cause']).toBe('undecodable');
  });

  it('whose schema gives a thenable of another kind gets the payload, not undefined', async () => {
    const seen: unknown[] = [];
    const validate = (value: unknown) =>
      ({ then: (ok: (result: unknown) => void) => ok({ value }) }) as unknown as Promise<{ value: unknown }>;
    await world.start({
      handlers: [
        defineHandler({
          name: 'h',
          source: topic('orders', { payload: { '~standard': { version: 1, vendor: 'x', validate } } }),
          subscription: 's',
          handle: (d) => (seen.push(d.payload), success()),
        }),
      ],
    });
    await world.publish('orders', 'bad');
    await world.clock.advanceBy(seconds(1));
    expect(seen).not.toContain(undefined);
  });
});

describe('an observer', () => {
  // "Observers are contained and reported": an async one compiles, so its rejection must be contained too.
  it('that is async and rejects in onSettled does not end the process', async () => {
    const plugin = { name: 'p', onSettled: async () => Promise.reject(new Error('p')) };
    expect(await survive(() => success(), {}, { plugins: [plugin] })).toEqual(SURVIVED);
  });
  it('that is async and rejects in onDeadLettered does not end the process', async () => {
    const plugin = { name: 'p', onDeadLettered: async () => Promise.reject(new Error('p')) };
    expect(await survive(() => poison('x'), {}, { plugins: [plugin] })).toEqual(SURVIVED);
  });
  it('that is async telemetry and rejects does not end the process', async () => {
    const telemetry = { onSettled: async () => Promise.reject(new Error('t')) };
    expect(await survive(() => success(), {}, { telemetry })).toEqual(SURVIVED);
  });
  it('that throws a revoked proxy in onSettled does not make an acknowledged message run again', async () => {
    let runs = 0;
    const plugin = {
      name: 'p',
      onSettled: () => {
        throw revokedError();
      },
    };
    await survive(() => (runs++, success()), {}, { plugins: [plugin] });
    expect(runs).toBe(1);
  });
  it('that a logger gives a promise of, which rejects, does not end the process', async () => {
    const bad = async (): Promise<void> => {
      throw new Error('the log backend is down');
    };
    const logger = { debug: bad, info: bad, warn: bad, error: bad };
    expect(await survive(() => poison('x'), {}, { logger })).toEqual(SURVIVED);
  });

  it('that throws in isEnabled of the logger does not make an acknowledged message run again', async () => {
    // "A logger must not throw; what it does throw is swallowed by the runtime."
    let runs = 0;
    const logger = {
      ...world.logger,
      isEnabled: () => {
        throw new Error('logger');
      },
    };
    await survive(() => (runs++, success()), {}, { logger });
    expect(runs).toBe(1);
  });
});
