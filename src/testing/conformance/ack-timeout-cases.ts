// The ack timeout of a handler: when the broker is asked for a message whose run takes too long, and when it is not.
import { fixedBackoff } from '../../core/backoff.js';
import type { Delivery } from '../../core/delivery.js';
import type { ReceivedMessage } from '../../core/message.js';
import type { Outcome } from '../../core/outcome.js';
import { success } from '../../core/outcome.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import type { ConformanceWorld } from './conformance-world.js';
import { expectEqual, expectTrue, textsOf } from './expectations.js';
import type { WatchedHandlerOptions } from './watched-handler.js';
import { SUBSCRIPTION, WatchedHandler, expectSettled, gate, json } from './watched-handler.js';

const MULTI = ['shared', 'key-shared'] as const;
/** The smallest that there is. */
const TIMEOUT_MS = 1_000;
/** More than lie in a client with one slot and a prefetch of 1. */
const FILLERS = ['0', '1', '2', '3', '4'].map((text) => json(`filler${text}-`));

interface Reclaimed {
  /** What the other consumer got, the message that was asked back last. */
  readonly taken: readonly ReceivedMessage[];
  /** From the beginning of its run, milliseconds. */
  readonly afterMs: number;
}

/**
 * Runs of all but "quick" hang, and the client is full, so that the message "slow" can go to another consumer only when it is
 * asked back. `publish` publishes it. Checks that no message is run twice, and that none is left.
 */
async function reclaim(
  world: ConformanceWorld,
  options: WatchedHandlerOptions,
  publish: (topic: string) => Promise<unknown>,
): Promise<Reclaimed> {
  const topic = await world.newTopic();
  const end = gate();
  const hang = async ({ payload }: Delivery): Promise<Outcome> => {
    if (payload !== 'quick') await end.opened;
    return success();
  };
  const handler = await WatchedHandler.start(world, topic, { concurrency: 1, prefetch: 1, ...options }, hang);
  await publish(topic);
  await handler.until('slow1');
  await world.publish(topic, ...FILLERS);
  await world.elapse(100);
  const other = await world.subscribe(topic, { subscription: SUBSCRIPTION });
  const taken = await other.takeThrough('"slow"');
  const afterMs = world.clock.now() - handler.atMs('slow1');
  await other.acknowledge(...taken);
  end.open();
  await other.acknowledge(...(await other.takeUntilQuiet()));
  await handler.drain();
  expectEqual(handler.names.length, new Set(handler.names).size, 'runs, and names of runs');
  await expectSettled(world, topic);
  return { taken, afterMs };
}

const asked: readonly ConformanceCase[] = [
  {
    title: 'runtime, shared: what runs longer than the ack timeout goes to another consumer, and not before',
    rules: [
      'A-01: there is no ack timeout unless asked for; it is at least 1 s',
      'A-02: the ack timeout is never early',
      'A-05: a message whose time is over is asked back and tracked no longer',
    ],
    needs: ['redelivery-count'],
    async run(world) {
      const { taken, afterMs } = await reclaim(world, { ackTimeoutMs: TIMEOUT_MS }, (topic) =>
        world.publish(topic, json('slow')),
      );
      expectTrue(afterMs >= TIMEOUT_MS, `it was asked back after ${afterMs} ms, before its ${TIMEOUT_MS} ms`);
      expectEqual(taken.at(-1)?.redeliveryCount, 1, 'the redelivery count');
    },
  },
  {
    title: 'runtime, shared: the backoff of the ack timeout is added to it',
    rules: ['A-06: the backoff of the ack timeout is added to it, by redelivery count'],
    needs: ['redelivery-count'],
    async run(world) {
      const options = { ackTimeoutMs: TIMEOUT_MS, ackTimeoutBackoff: fixedBackoff(700) };
      const { afterMs } = await reclaim(world, options, (topic) => world.publish(topic, json('slow')));
      expectTrue(afterMs >= TIMEOUT_MS + 700, `it was asked back after ${afterMs} ms, before its 1,700 ms`);
    },
  },
];

const notAsked: readonly ConformanceCase[] = forTypes(
  MULTI,
  (type) => ({
    title: `runtime, ${type}: what waits behind a slow run has no ack timeout yet`,
    rules: ['A-03: the ack timeout runs from the moment a message is handed on; one that lies in the client has none'],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      const slowly = async (): Promise<Outcome> => {
        await new Promise<void>((resolve) => world.clock.setTimer(350, resolve));
        return success();
      };
      const options = { type, concurrency: 1, prefetch: 5, ackTimeoutMs: TIMEOUT_MS };
      const handler = await WatchedHandler.start(world, topic, options, slowly);
      await world.publish(topic, ...['a', 'b', 'c', 'd'].map((text) => json(text, { key: 'k' })));
      await handler.until('a1', 'b1', 'c1', 'd1');
      await handler.drain();
      const counts = handler.runs.map(({ delivery }) => delivery.redeliveryCount);
      expectEqual(counts, [0, 0, 0, 0], 'the redelivery counts of the runs');
      await expectSettled(world, topic, { type });
    },
  }),
  (type) => ({
    title: `runtime, ${type}: an acknowledged message is not asked back when its ack timeout is over`,
    rules: ['A-07: an acknowledgement ends the ack timeout'],
    async run(world) {
      const topic = await world.newTopic();
      const handler = await WatchedHandler.start(world, topic, { type, ackTimeoutMs: TIMEOUT_MS });
      await world.publish(topic, json('a'), json('b'));
      await handler.until('a1', 'b1');
      await world.elapse(TIMEOUT_MS + 200);
      handler.expectRuns('a1', 'b1');
      await handler.drain();
      await expectSettled(world, topic, { type });
    },
  }),
);

const batches: readonly ConformanceCase[] = [
  {
    title: 'runtime, shared: a batch of which one message is not done in time is asked back for that one',
    rules: [
      'A-04: the ack timeout is one per entry',
      'A-07: of a batch the last message that is acknowledged ends the ack timeout',
    ],
    needs: ['producer-batches', 'redelivery-count'],
    async run(world) {
      const options = { concurrency: 2, ackTimeoutMs: TIMEOUT_MS };
      const { taken } = await reclaim(world, options, (topic) =>
        world.publishBatch(topic, json('quick'), json('slow')),
      );
      expectTrue(!textsOf(taken).includes('"quick"'), 'the message of the batch that was done came again');
      expectEqual(taken.at(-1)?.redeliveryCount, 1, 'the redelivery count');
    },
  },
];

export const ackTimeoutCases: readonly ConformanceCase[] = [...asked, ...notAsked, ...batches];
