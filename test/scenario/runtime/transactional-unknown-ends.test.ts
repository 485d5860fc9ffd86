// A commit whose end stays unknown: the message is asked for and nothing else is done about it, whatever copies are here
// already; what was acknowledged before its connection was lost comes over the next one.
import { beforeEach, describe, expect, it } from 'vitest';
import { TransportError, defineHandler, seconds, success, topic } from '../../../src/index.js';
import type { Delivery, HandlerOptions, SubscriptionType, Transport } from '../../../src/index.js';
import { EmbeddedBroker, embedded, memoryMetadataStore } from '../../../src/embedded.js';
import { readTopic } from '../../../src/testing/read-topic.js';
import { CutTransport } from '../../support/cut-transport.js';
import { World, payloadOf } from '../../support/runtime-world.js';
import { ScriptedTransactions } from '../../support/scripted-transactions.js';
import { transportWith } from '../../support/transport-with.js';

const jobs = topic('jobs');
const out = topic('out');
const TYPES: readonly SubscriptionType[] = ['shared', 'key-shared', 'exclusive', 'failover'];
let world: World;
beforeEach(() => {
  world = new World();
});

const wait = (ms: number): Promise<void> => new Promise((resolve) => world.clock.setTimer(ms, resolve));
const unknown = (): Error => new TransportError('TRANSACTION_OUTCOME_UNKNOWN', 'no clear answer', { retriable: false });

async function start(transport: Transport, options: HandlerOptions) {
  const runs: unknown[] = [];
  const handler = defineHandler({
    ...{ name: 'h', source: jobs, subscription: 's', publishes: [out], transactional: true, ...options },
    handle: ({ payload }: Delivery) => {
      runs.push(payload);
      return success(out.message(payload));
    },
  });
  return { runtime: await world.start({ handlers: [handler], transport }), runs };
}

describe('a copy that is here before the redelivery was asked for', () => {
  /** While the first commit is asked for, the connection is lost and brings the message once more. */
  async function run(
    type: SubscriptionType,
    end: (scripted: ScriptedTransactions, commit: () => Promise<void>) => unknown,
  ) {
    const cut = new CutTransport(embedded({ broker: world.broker }));
    const scripted = new ScriptedTransactions(cut.transport);
    scripted.script.commit = [
      async (commit) => {
        await cut.links[0]?.cut();
        await cut.links[0]?.open();
        await wait(1_000);
        await end(scripted, commit);
        throw unknown();
      },
    ];
    const { runtime, runs } = await start(scripted.transport, { type });
    await world.publish('jobs', 1, { key: 'k' });
    await world.clock.advanceBy(seconds(100));
    const results = (await world.read('out')).map(payloadOf);
    const backlog = world.backlog('jobs', 's');
    await world.drain(runtime);
    const published = scripted.asked.filter((asked) => asked.includes('publish')).length;
    const asked = scripted.asked.filter((each) => each.startsWith('redeliver'));
    return { runs, results, backlog, published, asked, open: scripted.open };
  }

  it.each(TYPES)('on %s is not run: the transaction may have been committed', async (type) => {
    const { asked, ...end } = await run(type, (_, commit) => commit());
    expect(end).toEqual({ runs: [1], results: [1], backlog: 0, published: 1, open: [] });
    expect(asked[0]).toBe('redeliver 1:0:-1');
  });

  it.each(TYPES)('on %s is asked for, and the answer runs where it was aborted', async (type) => {
    const end = await run(type, (scripted) => scripted.abortByBroker());
    expect(end).toEqual({
      ...{ runs: [1, 1], results: [1], backlog: 0, published: 2, open: [] },
      asked: ['redeliver 1:0:-1'],
    });
  });

  it('of a batch is not run while the entry cannot be asked back yet', async () => {
    const cut = new CutTransport(embedded({ broker: world.broker }));
    const scripted = new ScriptedTransactions(cut.transport);
    let finish = (): void => undefined;
    scripted.script.commit = [
      async (commit) => {
        await cut.links[0]?.cut();
        await cut.links[0]?.open();
        await wait(1_000);
        await commit();
        throw unknown();
      },
    ];
    const runs: unknown[] = [];
    const handler = defineHandler({
      ...{ name: 'h', source: jobs, subscription: 's', publishes: [out], transactional: true, concurrency: 2 },
      handle: async ({ payload }: Delivery) => {
        runs.push(payload);
        if (payload === 'slow') await new Promise<void>((resolve) => (finish = resolve));
        return success(out.message(payload));
      },
    });
    const runtime = await world.start({ handlers: [handler], transport: scripted.transport });
    await world.publishBatch('jobs', ['quick', 'slow']);
    await world.clock.advanceBy(seconds(5));
    finish();
    await world.clock.advanceBy(seconds(100));

    expect(runs).toEqual(['quick', 'slow']);
    expect((await world.read('out')).map(payloadOf)).toEqual(['quick', 'slow']);
    await world.drain(runtime);
  });
});

describe('a connection that was lost between the acknowledgement and the end', () => {
  it.each(TYPES)('on %s: what is aborted afterwards comes over the next one', async (type) => {
    const broker = new EmbeddedBroker({ clock: world.clock, transactions: { store: memoryMetadataStore() } });
    const inner = embedded({ broker });
    let isFirst = true;
    const transport = transportWith(inner, {
      newTransaction: async (options) => {
        const transaction = await inner.newTransaction(options);
        const really = transaction.commit.bind(transaction);
        const commit = async (): Promise<void> => {
          if (!isFirst) return really();
          isFirst = false;
          broker.unload('jobs');
          await wait(1_000);
          await transaction.abort();
          throw unknown();
        };
        return Object.assign(transaction, { commit });
      },
    });
    const { runtime, runs } = await start(transport, { type });
    await broker.publish('jobs', { payload: Buffer.from('1'), key: 'k', properties: {} });
    await world.clock.advanceBy(seconds(100));

    expect(runs).toEqual([1, 1]);
    expect((await readTopic(broker, world.clock, 'out', 'reader')).map(payloadOf)).toEqual([1]);
    await world.drain(runtime);
  });
});
