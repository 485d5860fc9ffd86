// PIP-493, the client's half, on the embedded broker: what the broker is asked, and what reaches the handler.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, MessageId, Outcome, Transport } from '../../../src/index.js';
import { defer, defineHandler, minutes, retryAfter, seconds, success, topic } from '../../../src/index.js';
import { EmbeddedBroker, embedded } from '../../../src/embedded.js';
import { World } from '../../support/runtime-world.js';
import { transportWith } from '../../support/transport-with.js';

const DELAY_MS = seconds(5);
const TOPIC = 'persistent://public/default/accounts';

let world: World;
let names: Map<number, string>;
/** What the broker was asked, in order: `acknowledge A1`, `nack A1 return A2 A3`, `redeliver A1`. */
let asked: string[];
beforeEach(() => {
  world = new World();
  names = new Map();
  asked = [];
});
afterEach(() => world.end());

async function publish(...payloads: readonly string[]): Promise<void> {
  for (const payload of payloads) {
    const id = await world.broker.publish('accounts', {
      payload: Buffer.from(JSON.stringify(payload)),
      properties: {},
      ...(payload.startsWith('-') ? {} : { key: payload[0] }),
    });
    names.set(id.entryId, payload);
  }
}

/** The embedded transport, with what it is asked written down. */
function watched(broker = world.broker): Transport {
  const inner = embedded({ broker });
  const named = (ids: readonly MessageId[]): string => ids.map(({ entryId }) => names.get(entryId) ?? '?').join(' ');
  return transportWith(inner, {
    clock: broker.clock,
    subscribe: async (spec) => {
      const own = await inner.subscribe(spec);
      const write =
        <A extends readonly unknown[], R>(text: (...args: A) => string, call: (...args: A) => R) =>
        (...args: A): R => {
          asked.push(text(...args));
          return call(...args);
        };
      return Object.assign(Object.create(own) as typeof own, {
        receive: own.receive.bind(own),
        acknowledge: write((ids: readonly MessageId[]) => `acknowledge ${named(ids)}`, own.acknowledge.bind(own)),
        redeliver: write((ids: readonly MessageId[]) => `redeliver ${named(ids)}`, own.redeliver.bind(own)),
        negativeAcknowledgeOrdered: write(
          (nacked, returned) => `nack ${named(nacked)} return ${named(returned)}`,
          (nacked: readonly MessageId[], returned: readonly MessageId[]) =>
            own.negativeAcknowledgeOrdered(nacked, returned),
        ),
        pause: own.pause.bind(own),
        resume: own.resume.bind(own),
        onState: own.onState.bind(own),
        close: own.close.bind(own),
      });
    },
  });
}

interface StartOptions extends HandlerOptions {
  readonly broker?: EmbeddedBroker;
  readonly transport?: Transport;
  readonly topics?: readonly string[];
}

/** Runs as `payload#attempt`, in the order they started. */
async function start(
  handle: (delivery: Delivery) => Outcome | Promise<Outcome>,
  { broker = world.broker, transport = watched(broker), topics = ['accounts'], ...options }: StartOptions = {},
) {
  const runs: string[] = [];
  const runtime = await world.start({
    transport,
    handlers: [
      defineHandler({
        name: 'ledger',
        source: topics.map((name) => topic(name)),
        subscription: 's',
        type: 'key-shared',
        ordering: 'key',
        ...options,
        handle: (delivery) => {
          runs.push(`${String(delivery.payload)}#${delivery.attempt}`);
          return handle(delivery);
        },
      }),
    ],
  });
  return { runs, runtime };
}

function failsOnce(payload: string): (delivery: Delivery) => Outcome {
  let failed = false;
  return (delivery) => {
    if (delivery.payload !== payload || failed) return success();
    failed = true;
    return retryAfter(DELAY_MS);
  };
}

/** What else has arrived meanwhile waits behind it. */
function slowly(handle: (delivery: Delivery) => Outcome): (delivery: Delivery) => Promise<Outcome> {
  return async (delivery) => {
    await new Promise<void>((resolve) => world.clock.setTimer(10, resolve));
    return handle(delivery);
  };
}

describe('a message that fails', () => {
  it('goes back with what waits behind it on its key, and everything comes in its place (K-55)', async () => {
    const { runs } = await start(failsOnce('A1'));
    await publish('A1', 'B1', 'A2', 'B2', 'A3', 'B3');
    await world.clock.advanceBy(0);
    expect(runs).toEqual(['A1#1', 'B1#1', 'B2#1', 'B3#1']);
    await publish('A4');
    await world.clock.advanceBy(DELAY_MS - 1);
    expect(runs).toHaveLength(4);
    await world.clock.advanceBy(1);
    expect(runs.slice(4)).toEqual(['A1#2', 'A2#1', 'A3#1', 'A4#1']);
    expect(world.backlog('accounts', 's')).toBe(0);
  });

  it('the broker is told at once, and asked for it when its delay is over (K-41)', async () => {
    await start(failsOnce('A1'));
    await publish('A1', 'A2');
    await world.clock.advanceBy(0);
    expect(asked).toEqual(['nack A1 return ', 'nack  return A2']);
    await world.clock.advanceBy(DELAY_MS);
    expect(asked.slice(2)).toEqual(['redeliver A1', 'acknowledge A1', 'acknowledge A2']);
  });

  it('what was acknowledged before reaches the broker first (K-42)', async () => {
    await start(failsOnce('A2'));
    await publish('A1', 'A2');
    await world.clock.advanceBy(0);
    expect(asked).toEqual(['acknowledge A1', 'nack A2 return ']);
  });

  it('without a key takes the way of all others (K-43)', async () => {
    const { runs } = await start(failsOnce('-1'));
    await publish('-1', '-2');
    await world.clock.advanceBy(DELAY_MS);
    expect(asked.filter((call) => call.startsWith('nack'))).toEqual([]);
    expect(runs).toEqual(['-1#1', '-2#1', '-1#2']);
  });

  it('what goes back is no attempt, and counts nowhere (K-45)', async () => {
    const { runs } = await start(failsOnce('A1'));
    await publish('A1', 'A2');
    await world.clock.advanceBy(DELAY_MS);
    expect(runs).toEqual(['A1#1', 'A1#2', 'A2#1']);
    expect(world.reports.map(({ attempt, settlement }) => `${settlement} ${attempt}`)).toEqual([
      'redeliver 1',
      'acknowledge 2',
      'acknowledge 1',
    ]);
    expect(world.log.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
  });

  it('again and again keeps its key waiting until it is a dead letter', async () => {
    const { runs } = await start(({ payload }) => (payload === 'A1' ? retryAfter(DELAY_MS) : success()), {
      redelivery: { maxDeliveries: 3 },
    });
    await publish('A1', 'A2', 'B1');
    await world.clock.advanceBy(3 * DELAY_MS);
    expect(runs).toEqual(['A1#1', 'B1#1', 'A1#2', 'A1#3', 'A2#1']);
    expect(await world.deadLetters('accounts', 's')).toHaveLength(1);
  });

  it('holds no payload while it waits, and none of its key', async () => {
    const { runtime } = await start(failsOnce('A1'));
    await publish('A1', 'A2', 'A3');
    await world.clock.advanceBy(0);
    expect(runtime.health()[0]).toMatchObject({ held: 1, kept: 0, waitingKeys: 0, state: 'running' });
  });

  it('one that was deferred has not failed: it waits in place, and its key behind it', async () => {
    let first = true;
    const { runs, runtime } = await start(({ payload }) => {
      if (payload !== 'A1' || !first) return success();
      first = false;
      return defer(DELAY_MS);
    });
    await publish('A1', 'A2');
    await world.clock.advanceBy(0);
    expect(runtime.health()[0]).toMatchObject({ held: 0, kept: 1, waitingKeys: 1 });
    await world.clock.advanceBy(DELAY_MS);
    expect(runs).toEqual(['A1#1', 'A1#1', 'A2#1']);
    expect(asked.some((call) => call.startsWith('nack'))).toBe(false);
  });

  it('in a batch waits in place: its entry would come again with all it holds', async () => {
    const { runs, runtime } = await start(failsOnce('A1'));
    const batch = ['A1', 'A2'].map((payload) => ({ payload: Buffer.from(`"${payload}"`), properties: {}, key: 'A' }));
    await world.broker.publishBatch('accounts', batch);
    await world.clock.advanceBy(0);
    expect(runtime.health()[0]).toMatchObject({ held: 0, kept: 1 });
    await world.clock.advanceBy(DELAY_MS);
    expect(runs).toEqual(['A1#1', 'A1#2', 'A2#1']);
    expect(asked.some((call) => call.startsWith('nack'))).toBe(false);
  });
});

it('a message that fails when its subscription is closed already is left to the broker', async () => {
  const transport = watched();
  const { runtime } = await start(
    slowly(() => retryAfter(DELAY_MS)),
    { transport },
  );
  await publish('A1', 'A2');
  await world.clock.advanceBy(5);
  await transport.close();
  await world.clock.advanceBy(5);
  expect(runtime.health()[0]).toMatchObject({ running: 0, held: 1 });
  expect(world.backlog('accounts', 's')).toBe(2);
});

it('what waits behind it from another topic stays here: order is kept within a topic, and another may send nothing again', async () => {
  const rates = 'non-persistent://public/default/rates';
  const { runs } = await start(slowly(failsOnce('A1')), { topics: ['accounts', rates] });
  await publish('A1', 'A2');
  await world.publish(rates, 'rate', { key: 'A' });
  await world.clock.advanceBy(DELAY_MS + 100);
  expect(asked[0]).toBe('nack A1 return A2');
  expect(runs).toEqual(['A1#1', 'rate#1', 'A1#2', 'A2#1']);
});

describe('who is asked', () => {
  it.each([
    ['disabled', { orderedNegativeAck: 'disabled' }],
    ['without ordering', { ordering: 'none' }],
  ] as const)('nobody where it is %s (K-40)', async (_, options) => {
    await start(failsOnce('A1'), options);
    await publish('A1', 'A2');
    await world.clock.advanceBy(DELAY_MS);
    expect(asked.some((call) => call.startsWith('nack'))).toBe(false);
  });

  it('nobody where the broker does not keep the order (K-40): the message waits in place', async () => {
    const broker = new EmbeddedBroker({ clock: world.clock, keySharedNegativeAckOrdering: false });
    const { runtime, runs } = await start(failsOnce('A1'), { broker });
    for (const payload of ['A1', 'A2'])
      await broker.publish('accounts', { payload: Buffer.from(`"${payload}"`), properties: {}, key: 'A' });
    await world.clock.advanceBy(0);
    expect(runtime.health()[0]).toMatchObject({ held: 0, kept: 1, waitingKeys: 1 });
    await world.clock.advanceBy(DELAY_MS);
    expect(runs).toEqual(['A1#1', 'A1#2', 'A2#1']);
    expect(asked.some((call) => call.startsWith('nack'))).toBe(false);
  });

  it('required fails at start where the broker does not (K-50)', async () => {
    const broker = new EmbeddedBroker({ clock: world.clock, keySharedNegativeAckOrdering: false });
    await expect(start(() => success(), { broker, orderedNegativeAck: 'required' })).rejects.toThrow(
      /"orderedNegativeAck: required" needs a broker that keeps the order/,
    );
  });

  it('required runs where it does', async () => {
    const { runs } = await start(failsOnce('A1'), { orderedNegativeAck: 'required' });
    await publish('A1', 'A2');
    await world.clock.advanceBy(DELAY_MS);
    expect(runs).toEqual(['A1#1', 'A1#2', 'A2#1']);
  });
});

describe('over a lost connection (K-46)', () => {
  it('what waited is told to the new connection before anything later of its key runs, for the rest of its delay', async () => {
    const { runs } = await start(failsOnce('A1'));
    await publish('A1', 'A2', 'B1');
    await world.clock.advanceBy(seconds(2));
    asked.length = 0;
    world.broker.unload(TOPIC);
    await world.clock.advanceBy(DELAY_MS - seconds(2) - 1);
    expect(runs).toEqual(['A1#1', 'B1#1']);
    expect(asked).toEqual(['nack A1 return ', 'nack  return A2']);
    await world.clock.advanceBy(1);
    expect(runs).toEqual(['A1#1', 'B1#1', 'A1#2', 'A2#1']);
    expect(world.backlog('accounts', 's')).toBe(0);
  });

  it('to a broker that cannot keep the order, it waits in place', async () => {
    let keeps = true;
    const inner = watched();
    const transport = transportWith(inner, {
      subscribe: async (spec) => {
        const own = await inner.subscribe(spec);
        const onState = own.onState.bind(own);
        return Object.assign(own, {
          onState: (report: Parameters<typeof own.onState>[0]) =>
            onState((state) => report({ ...state, orderedNegativeAck: keeps })),
        });
      },
    });
    const { runs, runtime } = await start(failsOnce('A1'), { transport });
    await publish('A1', 'A2');
    await world.clock.advanceBy(seconds(2));
    expect(runtime.health()[0]).toMatchObject({ held: 1, kept: 0 });
    keeps = false;
    world.broker.unload(TOPIC);
    await world.clock.advanceBy(0);
    expect(runtime.health()[0]).toMatchObject({ held: 0, kept: 1, waitingKeys: 1 });
    await world.clock.advanceBy(DELAY_MS);
    expect(runs).toEqual(['A1#1', 'A1#2', 'A2#1']);
  });

  it('a process that leaves hands its keys on in order', async () => {
    const { runs, runtime } = await start(failsOnce('A1'));
    await publish('A1', 'A2', 'A3');
    await world.clock.advanceBy(seconds(1));
    await world.drain(runtime);
    const second = await start(() => success());
    await world.clock.advanceBy(minutes(1));
    expect(runs).toEqual(['A1#1']);
    expect(second.runs.map((run) => run.slice(0, 2))).toEqual(['A1', 'A2', 'A3']);
  });
});

it('what went back in vain, after its key had moved away and come back, comes before what is later', async () => {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'.split('');
  const succeeds = slowly(() => success());
  const handle = (delivery: Delivery): Outcome | Promise<Outcome> => {
    if (delivery.key === 'slow') return succeeds(delivery);
    return String(delivery.payload).endsWith('1') && delivery.attempt === 1 ? retryAfter(DELAY_MS) : success();
  };
  const own = await start(handle, { concurrency: 1, prefetch: 50 });
  await publish(...letters.map((letter) => `${letter}1`));
  await world.clock.advanceBy(0);
  const other = await start(() => success());
  await world.clock.advanceBy(DELAY_MS);
  const moved = other.runs[0]?.charAt(0) ?? 'none';
  expect(letters).toContain(moved);
  await world.drain(other.runtime);

  await world.publish('accounts', 'first', { key: 'slow' });
  await world.clock.advanceBy(0);
  await publish(`${moved}2`);
  await world.publish('accounts', 'second', { key: 'slow' });
  await publish(`${moved}3`);
  await world.clock.advanceBy(15);
  await publish(`${moved}4`);
  await world.clock.advanceBy(seconds(1));
  expect(own.runs.filter((run) => run.startsWith(moved))).toEqual([1, 2, 3, 4].map((n) => `${moved}${n}#1`));
});
