// How often a broker is asked again by what it keeps sending away.
import { expect, it } from 'vitest';
import type { Peer, Script } from '../../support/wire-server.js';
import { SocketClock } from '../../support/wire-server.js';
import { section, startSubscription } from '../../support/scripted-consumer.js';

const CALM = { keepAliveMs: 3_600_000, reconnectMinMs: 100, reconnectMaxMs: 10_000 };

async function start(script: Script) {
  const clock = new SocketClock();
  const started = await startSubscription({}, script, { ...CALM, clock });
  const subscribes = (): number => started.all('SUBSCRIBE').length;
  return { ...started, clock, subscribes };
}

/** How long it waited until it subscribed once more, in steps of 25 ms. */
async function nextWaitMs({ clock, subscribes, settled }: Awaited<ReturnType<typeof start>>): Promise<number> {
  const before = subscribes();
  for (let waitedMs = 0; waitedMs < 5_000; waitedMs += 25) {
    // The close has come; or the lookup has its answer, and then the subscription.
    for (let answers = 0; answers < 3; answers++) await settled();
    if (subscribes() > before) return waitedMs;
    await clock.advanceBy(25);
  }
  return Infinity;
}

it('a broker that takes a subscription and closes it at once is asked after waits that grow', async () => {
  const started = await start({
    SUBSCRIBE: ({ requestId, consumerId }, peer: Peer) => {
      peer.send('SUCCESS', { requestId });
      peer.send('CLOSE_CONSUMER', { consumerId, requestId: -1 });
    },
  });

  const waits: number[] = [];
  for (let round = 0; round < 4; round++) waits.push(await nextWaitMs(started));

  expect(waits).toEqual([75, 150, 300, 600]);
});

it('the waits begin anew once it was attached for longer than it had waited', async () => {
  const started = await start({});
  const { say, consumerId, clock } = started;
  const waits: number[] = [];
  for (let round = 0; round < 3; round++) {
    say('CLOSE_CONSUMER', { consumerId, requestId: -1 });
    waits.push(await nextWaitMs(started));
    await clock.advanceBy(80);
  }

  expect(waits).toEqual([75, 75, 75]);
});

it('the waits begin anew with each message that came', async () => {
  const started = await start({});
  const { say, deliver, consumerId, settled } = started;
  const waits: number[] = [];
  for (let round = 0; round < 4; round++) {
    deliver(round, section(`message ${round}`));
    await settled();
    say('CLOSE_CONSUMER', { consumerId, requestId: -1 });
    waits.push(await nextWaitMs(started));
  }

  expect(waits).toEqual([75, 75, 75, 75]);
});
