// A handler's own subscription and that of its retry letters as one: a side that is quiet for hours costs nothing.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import type { ReceivedMessage, Subscription } from '../../../src/index.js';
import { JoinedSubscription } from '../../../src/runtime/joined-subscription.js';
import { FakeClock } from '../../../src/testing.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function heapBytes(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

const nothing = (): void => undefined;
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

it('receiving from one side leaves nothing on the other, however long that is silent', async () => {
  const id = { ledgerId: 1, entryId: 1, partition: -1, batchIndex: -1, batchSize: 1, topic: 'persistent://a/b/own' };
  const message: ReceivedMessage = {
    id,
    payload: null,
    properties: {},
    publishTimeMs: 0,
    redeliveryCount: 0,
    connection: 1,
  };
  const own = { receive: () => Promise.resolve(message) } as Partial<Subscription> as Subscription;
  const letters = { receive: () => new Promise(nothing) } as Partial<Subscription> as Subscription;
  const clock = new FakeClock();
  const joined = new JoinedSubscription({ own, letters, letterTopics: [], handler: 'h', clock, logger });
  const { signal } = new AbortController();
  const receive = async (times: number): Promise<void> => {
    for (let i = 0; i < times; i++) await joined.receive(signal);
  };
  await receive(1_000);
  const before = heapBytes();
  await receive(50_000);
  expect((heapBytes() - before) / 50_000).toBeLessThan(50);
});
