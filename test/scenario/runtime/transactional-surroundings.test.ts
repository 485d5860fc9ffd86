// Transactional handlers beside everything else a runtime does: order, batches, retry letters, drains, lost connections,
// stores, plugins, telemetry, other handlers.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome, RuntimeOptions } from '../../../src/index.js';
import {
  defineHandler,
  explain,
  fixedBackoff,
  idempotent,
  memoryIdempotencyStore,
  retryAfter,
  seconds,
  success,
  topic,
} from '../../../src/index.js';
import { EmbeddedBroker, embedded, memoryMetadataStore } from '../../../src/embedded.js';
import { sqliteStore } from '../../../src/sqlite.js';
import { FaultyTransport } from '../../../src/testing.js';
import { readTopic } from '../../../src/testing/read-topic.js';
import { CutTransport } from '../../support/cut-transport.js';
import { World, payloadOf } from '../../support/runtime-world.js';
import { ScriptedTransactions, answerLost, fails, hangs, notSent } from '../../support/scripted-transactions.js';

const jobs = topic('jobs');
const out = topic('out');
let world: World;
let cut: CutTransport;
let scripted: ScriptedTransactions;
beforeEach(() => {
  world = new World();
  cut = new CutTransport(embedded({ broker: world.broker }));
  scripted = new ScriptedTransactions(cut.transport);
});

const echo = ({ payload }: Delivery): Outcome => success(out.message(payload));
const abortedByBroker = async (commit: () => Promise<void>): Promise<void> => {
  scripted.abortByBroker();
  await fails('TRANSACTION_ENDED', false)(commit);
};

async function start(
  handle: (delivery: Delivery) => Outcome | Promise<Outcome>,
  options: HandlerOptions = {},
  more: Partial<RuntimeOptions> = {},
) {
  const runs: unknown[] = [];
  const handler = defineHandler({
    ...{ name: 'h', source: jobs, subscription: 's', publishes: [out], transactional: true, ...options },
    handle: (delivery) => {
      runs.push(delivery.payload);
      return handle(delivery);
    },
  });
  const runtime = await world.start({ handlers: [handler], transport: scripted.transport, ...more });
  return { runtime, runs };
}

const outputs = async (): Promise<unknown[]> => (await world.read('out')).map(payloadOf);
const state = async (): Promise<unknown> => ({
  out: await outputs(),
  backlog: world.backlog('jobs', 's'),
  open: scripted.open,
});

describe('under order', () => {
  it.each<readonly [string, HandlerOptions]>([
    ['key', { type: 'key-shared', ordering: 'key' }],
    ['key, where the broker keeps it not', { type: 'key-shared', ordering: 'key', orderedNegativeAck: 'disabled' }],
    ['partition', { type: 'failover', ordering: 'partition' }],
  ])('of %s nothing later passes what was in a transaction that was aborted', async (_, options) => {
    scripted.script.commit = [undefined, abortedByBroker];
    scripted.script.acknowledge = [undefined, undefined, answerLost()];
    const { runtime, runs } = await start(echo, options);
    for (const value of [1, 2, 3]) await world.publish('jobs', value, { key: 'k' });
    await world.clock.advanceBy(seconds(100));

    expect(runs).toEqual([1, 2, 2, 2, 3]);
    expect(await state()).toEqual({ out: [1, 2, 3], backlog: 0, open: [] });
    await world.drain(runtime);
  });

  it('a commit whose end stays unknown stops its key for a while only', async () => {
    scripted.script.commit = [answerLost('TRANSACTION_OUTCOME_UNKNOWN', false)];
    const { runtime, runs } = await start(echo, { type: 'key-shared', ordering: 'key' });
    for (const value of [1, 2]) await world.publish('jobs', value, { key: 'k' });
    await world.clock.advanceBy(seconds(39));
    expect(runs).toEqual([1]);
    await world.clock.advanceBy(seconds(60));

    expect(runs).toEqual([1, 2]);
    expect(await state()).toEqual({ out: [1, 2], backlog: 0, open: [] });
    await world.drain(runtime);
  });

  it('a connection that is lost while the commit is asked for lets nothing later of the key pass', async () => {
    scripted.script.commit = [
      async (commit) => {
        await cut.links[0]?.cut();
        scripted.abortByBroker();
        await cut.links[0]?.open();
        await fails()(commit);
      },
      abortedByBroker,
    ];
    const { runtime, runs } = await start(echo, { type: 'key-shared', ordering: 'key' });
    for (const value of [1, 2]) await world.publish('jobs', value, { key: 'k' });
    await world.clock.advanceBy(seconds(100));

    expect(runs).toEqual([1, 1, 2]);
    expect(await state()).toEqual({ out: [1, 2], backlog: 0, open: [] });
    await world.drain(runtime);
  });

  it('an acknowledgement that its lost connection refuses waits for the copy, without a run, and keeps its key', async () => {
    scripted.script.acknowledge = [
      async (acknowledge) => {
        await cut.links[0]?.cut();
        await notSent()(acknowledge);
      },
    ];
    const { runtime, runs } = await start(echo, { type: 'key-shared', ordering: 'key' });
    for (const value of [1, 2]) await world.publish('jobs', value, { key: 'k' });
    await world.clock.advanceBy(seconds(5));
    expect(await state()).toMatchObject({ out: [], backlog: 2 });
    await cut.links[0]?.open();
    await world.clock.advanceBy(seconds(5));

    expect(runs).toEqual([1, 2]);
    expect(await state()).toEqual({ out: [1, 2], backlog: 0, open: [] });
    await world.drain(runtime);
  });

  it('what waits for the end of its commit keeps its key, also over a lost connection', async () => {
    const broker = new EmbeddedBroker({ clock: world.clock, transactions: { store: memoryMetadataStore() } });
    // The first two calls are the question at start; then begin, open a publisher, publish, acknowledge, commit.
    const plan = { at: 7, fault: 'hangs', clock: world.clock } as const;
    const faulty = new FaultyTransport(embedded({ broker }), plan);
    const options = { type: 'key-shared', ordering: 'key' } as const;
    const { runtime, runs } = await start(echo, options, { transport: faulty, callTimeoutMs: 5_000 });
    for (const value of [1, 2])
      await broker.publish('jobs', { payload: Buffer.from(String(value)), key: 'k', properties: {} });
    await world.clock.advanceBy(seconds(1));
    broker.unload('jobs');
    await world.clock.advanceBy(seconds(60));

    expect([faulty.hit, runs]).toEqual(['commit', [1, 2]]);
    const out = await readTopic(broker, world.clock, 'out', 'reader');
    expect(out.map(payloadOf)).toEqual([1, 2]);
    await world.drain(runtime);
  });
});

describe('producer batches', () => {
  it.each(['shared', 'exclusive'] as const)(
    'on %s each message has its transaction; an abort brings back its own only',
    async (type) => {
      scripted.script.commit = [undefined, abortedByBroker];
      const { runtime, runs } = await start(echo, { type, concurrency: 1 });
      await world.publishBatch('jobs', ['a', 'b', 'c']);
      await world.clock.advanceBy(seconds(100));

      expect(runs.toSorted()).toEqual(['a', 'b', 'b', 'c']);
      expect({ ...((await state()) as object), out: (await outputs()).toSorted() }).toEqual({
        out: ['a', 'b', 'c'],
        backlog: 0,
        open: [],
      });
      await world.drain(runtime);
    },
  );

  it('a batch handler settles each delivery in a transaction of its own', async () => {
    const handler = defineHandler({
      ...{ name: 'b', source: jobs, subscription: 's', publishes: [out], transactional: true, batch: {} },
      handle: (deliveries) => deliveries.map(({ payload }) => success(out.message(payload))),
    });
    const runtime = await world.start({ handlers: [handler], transport: scripted.transport });
    for (const value of [1, 2, 3]) await world.publish('jobs', value);
    await world.clock.advanceBy(seconds(10));

    expect(scripted.asked.filter((asked) => asked.endsWith('commit'))).toHaveLength(3);
    expect((await outputs()).toSorted()).toEqual([1, 2, 3]);
    await world.drain(runtime);
  });
});

describe('retry letters', () => {
  it('are plain, and their copy is acknowledged in its transaction', async () => {
    let first = true;
    const { runtime } = await start(
      (delivery) => {
        if (!first) return echo(delivery);
        first = false;
        return retryAfter(seconds(3_600));
      },
      { retryTopic: true },
    );
    await world.publish('jobs', 1);
    await world.clock.advanceBy(seconds(4_000));

    expect(scripted.asked).toEqual([
      ...['publish jobs-s-RETRY', 'acknowledge 1:0:-1'],
      ...['t1 begin', 't1 publish out', expect.stringMatching(/^t1 acknowledge /), 't1 commit'],
    ]);
    expect(await state()).toEqual({ out: [1], backlog: 0, open: [] });
    expect(world.backlog('jobs-s-RETRY', 's')).toBe(0);
    await world.drain(runtime);
  });
});

describe('a drain', () => {
  it('waits for a commit that is being repeated', async () => {
    scripted.script.commit = [fails()];
    const { runtime } = await start(echo);
    await world.publish('jobs', 1);
    await world.clock.advanceBy(0);
    expect((await world.drain(runtime)).complete).toBe(true);
    expect(await state()).toEqual({ out: [1], backlog: 0, open: [] });
  });

  it.each(['begin', 'publish', 'acknowledge', 'commit'] as const)(
    'whose deadline passes while the answer to %s is missing closes; nothing is done twice, nothing is lost',
    async (step) => {
      world.endsEarly = true;
      const { runtime } = await start(echo);
      scripted.script[step] = [hangs];
      await world.publish('jobs', 1);
      await world.clock.advanceBy(0);
      expect((await world.drain(runtime, 1_000)).complete).toBe(false);
      expect(await outputs()).toEqual([]);
      expect(world.backlog('jobs', 's')).toBe(1);

      // The next process; what the first one left open the broker has ended.
      scripted.abortByBroker();
      const next = new ScriptedTransactions(embedded({ broker: world.broker }));
      const again = await start(echo, {}, { transport: next.transport });
      await world.clock.advanceBy(seconds(10));
      expect(await state()).toEqual({ out: [1], backlog: 0, open: [] });
      await world.drain(again.runtime);
    },
  );

  it('gives back what is awaited', async () => {
    scripted.script.acknowledge = [fails()];
    const { runtime } = await start(echo);
    await world.publish('jobs', 1);
    await world.clock.advanceBy(0);
    expect((await world.drain(runtime)).complete).toBe(true);
    expect(await state()).toEqual({ out: [], backlog: 1, open: [] });
  });
});

describe('idempotency', () => {
  it('a run whose outcome is recorded does not run again after an abort: what is recorded goes into the next transaction', async () => {
    scripted.script.commit = [undefined, abortedByBroker];
    const store = memoryIdempotencyStore();
    const guard = idempotent(jobs, { key: ({ payload }) => String(payload), store, ttlMs: seconds(1_000) });
    const { runtime, runs } = await start(echo, { idempotent: guard });
    for (const value of [1, 2]) await world.publish('jobs', value);
    await world.clock.advanceBy(seconds(100));

    expect(runs.toSorted()).toEqual([1, 2]);
    expect({ ...((await state()) as object), out: (await outputs()).toSorted() }).toEqual({
      out: [1, 2],
      backlog: 0,
      open: [],
    });
    await world.drain(runtime);
  });
});

describe('plugins', () => {
  it('stand around publishes in a transaction as around all others; one that throws aborts it', async () => {
    let throws = true;
    const plugin = {
      name: 'p',
      aroundPublish: async (request: never, next: (request: never) => Promise<void>) => {
        await next(request);
        if (throws) {
          throws = false;
          throw new Error('after it was sent');
        }
      },
    };
    const { runtime, runs } = await start(echo, { redelivery: { backoff: fixedBackoff(20) } }, { plugins: [plugin] });
    await world.publish('jobs', 1);
    await world.clock.advanceBy(seconds(10));

    expect(runs).toEqual([1, 1]);
    expect(scripted.asked).toContain('t1 abort');
    expect(await state()).toEqual({ out: [1], backlog: 0, open: [] });
    await world.drain(runtime);
  });
});

it('two handlers of one runtime have transactions of their own', async () => {
  const handlers = ['one', 'two'].map((subscription) =>
    defineHandler({
      ...{ name: subscription, source: jobs, subscription, publishes: [out], transactional: true },
      handle: () => success(out.message(subscription)),
    }),
  );
  scripted.script.commit = [abortedByBroker];
  const runtime = await world.start({ handlers, transport: scripted.transport });
  for (const value of [1, 2]) await world.publish('jobs', value);
  await world.clock.advanceBy(seconds(100));

  expect((await outputs()).toSorted()).toEqual(['one', 'one', 'two', 'two']);
  expect(handlers.map(({ subscription }) => world.backlog('jobs', subscription))).toEqual([0, 0]);
  await world.drain(runtime);
});

describe('telemetry', () => {
  it('sees each call to the coordinator, and a run ends once', async () => {
    scripted.script.commit = [fails()];
    const { runtime } = await start(echo);
    await world.publish('jobs', 1);
    await world.clock.advanceBy(seconds(10));

    expect(world.telemetry.runs).toMatchObject([{ end: 'settled', failedCalls: ['committing a transaction'] }]);
    expect(world.telemetry.runs[0]?.transactionCalls).toEqual(['begin', 'commit failed', 'commit']);
    await world.drain(runtime);
  });
});

describe('at start', () => {
  it('a transport without transactions is refused by name, with the remedy', async () => {
    const starting = start(echo, {}, { transport: new CutTransport(embedded({ broker: world.broker })).transport });
    await expect(starting).rejects.toThrow(
      'handler "h": "transactional" needs transactions, which the cut transport does not have; use embedded() or wire(), or leave it out',
    );
  });

  it('a broker that has none is asked once, before anything is opened', async () => {
    scripted = new ScriptedTransactions(cut.transport, { scriptsStart: true });
    scripted.script.begin = [fails('TRANSACTIONS_UNAVAILABLE', false)];
    await expect(start(echo)).rejects.toMatchObject({
      code: 'START_FAILED',
      message: expect.stringMatching(
        /^handler "h" cannot start: .*transactionCoordinatorEnabled=true.*leave "transactional" out/,
      ),
      cause: { code: 'TRANSACTIONS_UNAVAILABLE' },
    });
    expect([scripted.asked, cut.links]).toEqual([['t0 begin'], []]);
  });

  it('a folder that another process has is named as what is wrong, and nothing else is advised', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'pulsework-locked-'));
    const first = embedded({ store: sqliteStore({ dir }), clock: world.clock });
    await first.broker.open();
    const second = embedded({ store: sqliteStore({ dir, busyTimeoutMs: 1 }), clock: world.clock });
    const failure = await start(echo, {}, { transport: second }).catch((error: unknown) => error as Error);
    expect(failure).toMatchObject({ code: 'START_FAILED', cause: { code: 'STORE_LOCKED' } });
    expect((failure as Error).message).toMatch(/no transaction can be begun: .*another process has it/);
    expect((failure as Error).message).not.toContain('switch transactions on');
    await second.close();
    await first.close();
    rmSync(dir, { recursive: true });
  });

  it('nothing is asked where no handler has transactions', async () => {
    scripted = new ScriptedTransactions(cut.transport, { scriptsStart: true });
    const { runtime } = await start(echo, { transactional: false });
    expect(scripted.asked).toEqual([]);
    await world.drain(runtime);
  });

  it.each<readonly [string, HandlerOptions & { readonly source?: never }, RegExp]>([
    ['a text', { transactional: 'yes' as never }, /"transactional" must be true, false or \{ timeoutMs \}, got "yes"/],
    [
      'an unknown field',
      { transactional: { timeout: 1 } as never },
      /unknown option "transactional.timeout", did you mean "timeoutMs"/,
    ],
    ['no time', { transactional: { timeoutMs: 0 } }, /"transactional.timeoutMs" must be a duration of at least 1 ms/],
    [
      'a topic that is not persistent',
      { publishes: [topic('non-persistent://a/b/c')] },
      /no broker takes non-persistent:\/\/a\/b\/c into a transaction/,
    ],
  ])('%s is refused', async (_, options, sentence) => {
    await expect(start(echo, options)).rejects.toThrow(sentence);
  });

  it('a source that is not persistent is refused', () => {
    const source = { pattern: /non-persistent:\/\/a\/b\/.*/ };
    const handler = defineHandler({
      name: 'h',
      source,
      subscription: 's',
      transactional: true,
      handle: () => success(),
    });
    expect(() => explain([handler])).toThrow(/"transactional" needs topics that are persistent/);
  });
});
