// A transactional handler over the wire protocol: what it asks the broker for after an abort, command by command.
import { expect, it } from 'vitest';
import { Runtime, defineHandler, success, topic } from '../../../src/index.js';
import { wire } from '../../../src/wire.js';
import { closedAfterTest } from '../../support/closed-after-test.js';
import { ScriptedTopic, TOPIC, section } from '../../support/scripted-consumer.js';
import { WireServer } from '../../support/wire-server.js';
import { NOT_FOUND, all, cluster, order } from '../../unit/wire/transaction-kit.js';

const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const COMMIT = 0;
const WATCHED = ['ACK', 'END_TXN', 'REDELIVER_UNACKNOWLEDGED_MESSAGES'] as const;

it.each([
  ['shared', []],
  ['key-shared', []],
  ['exclusive', ['REDELIVER_UNACKNOWLEDGED_MESSAGES']],
  ['failover', ['REDELIVER_UNACKNOWLEDGED_MESSAGES']],
] as const)('on %s a transaction that was aborted is followed by %j', async (type, asked) => {
  let commits = 0;
  let isBack = (): void => undefined;
  const server = closedAfterTest(
    await WireServer.start(
      cluster({
        END_TXN: ({ requestId, txnAction }, peer) => {
          const refused = txnAction === COMMIT && ++commits === 1;
          peer.send(
            'END_TXN_RESPONSE',
            refused ? { requestId, error: NOT_FOUND.status, message: 'over' } : { requestId },
          );
          if (refused && asked.length === 0) isBack();
        },
        REDELIVER_UNACKNOWLEDGED_MESSAGES: () => isBack(),
      }),
    ),
  );
  const results = topic('results');
  const runs: number[] = [];
  const handler = defineHandler({
    ...{ name: 'h', source: topic(TOPIC), subscription: 's', publishes: [results], transactional: true, type },
    handle: ({ attempt }) => {
      runs.push(attempt);
      return success(results.message('done'));
    },
  });
  const transport = wire({ serviceUrl: server.url });
  const runtime = await Runtime.start({ transport, handlers: [handler], logger: SILENT });
  const { consumerId } = await server.command('SUBSCRIBE');
  const { deliver } = new ScriptedTopic(server, consumerId).face();
  isBack = () => deliver(1, section('"a"'), { redeliveryCount: 1, consumerEpoch: asked.length });
  deliver(1, section('"a"'));
  // The question at start, the transaction that is aborted, and the one after it.
  await server.command('END_TXN', 3);
  await runtime.drain();

  const [, ...commands] = order(server, WATCHED);
  expect(commands).toEqual(['ACK', 'END_TXN', ...asked, 'ACK', 'END_TXN']);
  expect(all(server, 'END_TXN').map(({ txnAction }) => txnAction)).toEqual([1, COMMIT, COMMIT]);
  expect(runs).toEqual([1, 1]);
});
