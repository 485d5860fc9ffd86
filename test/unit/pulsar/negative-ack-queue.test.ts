// Requests for redelivery in spaced bursts, against a tracker like the official client's: one timer that each request sets back.
import { FakeClock } from 'pulsework/testing';
import { expect, it } from 'vitest';
import {
  BURST_INTERVAL_MS,
  NEGATIVE_ACK_DELAY_MS,
  NegativeAckQueue,
} from '../../../src/transports/pulsar/negative-ack-queue.js';
import type { OfficialMessageId } from '../../../src/transports/pulsar/official-client.js';
import { ALL_ODD } from '../../support/pulsar-client-stand-in/odd-behaviours.js';
import { StandInMessageId } from '../../support/pulsar-client-stand-in/stand-in-messages.js';
import { StandInNacks } from '../../support/pulsar-client-stand-in/stand-in-nacks.js';

const idOf = (entryId: number): StandInMessageId =>
  new StandInMessageId(
    { ledgerId: 1, entryId, partition: -1, batchIndex: -1, batchSize: 0, topic: 't' },
    true,
    ALL_ODD,
  );

function world() {
  const clock = new FakeClock();
  const begunMs = clock.now();
  const backAtMs = new Map<number, number>();
  const tracker = new StandInNacks(
    NEGATIVE_ACK_DELAY_MS,
    true,
    (ids) => {
      for (const { known } of ids) if (typeof known === 'object') backAtMs.set(known.entryId, clock.now() - begunMs);
    },
    clock,
  );
  const handedOver: string[] = [];
  const queue = new NegativeAckQueue(clock, (entry, id) => {
    handedOver.push(entry);
    tracker.add(id as StandInMessageId);
  });
  return { clock, tracker, queue, backAtMs, handedOver };
}

// Y-25: with the official client the only way to ask for redelivery is its own negative acknowledgement.
it('a request each 10 ms starves none: each is back within a quarter of a second', async () => {
  const { clock, queue, backAtMs } = world();
  for (let i = 0; i < 300; i++) {
    void queue.add(`1:${i}`, idOf(i));
    await clock.advanceBy(10);
  }
  const early = [...backAtMs].filter(([, atMs]) => atMs < 3_000);
  expect(early.length).toBeGreaterThan(270);
  await clock.advanceBy(250);
  const waits = [...backAtMs].map(([i, atMs]) => atMs - i * 10);
  expect([waits.length, Math.max(...waits) < 250, Math.min(...waits) >= NEGATIVE_ACK_DELAY_MS]).toEqual([
    300,
    true,
    true,
  ]);
});

it('the tracker by itself would starve all of them', async () => {
  const { clock, tracker, backAtMs } = world();
  for (let i = 0; i < 300; i++) {
    tracker.add(idOf(i));
    await clock.advanceBy(10);
  }
  expect(backAtMs.size).toBe(0);
});

it('the interval is above the tick of the client, and the delay is divisible by 3 and not below its floor', () => {
  expect(BURST_INTERVAL_MS).toBeGreaterThan(NEGATIVE_ACK_DELAY_MS / 3 + 10);
  expect(NEGATIVE_ACK_DELAY_MS % 3).toBe(0);
  expect(NEGATIVE_ACK_DELAY_MS).toBeGreaterThanOrEqual(100);
});

it('what is asked for in one turn is one burst, each entry once, and resolves when the client has it', async () => {
  const { clock, queue, handedOver } = world();
  let handed = 0;
  for (const entry of ['1:0', '1:1', '1:0'])
    void queue.add(entry, idOf(Number(entry.slice(2)))).then(() => (handed += 1));
  expect(handedOver).toEqual([]);
  await clock.advanceBy(0);
  expect([handedOver, handed]).toEqual([['1:0', '1:1'], 3]);
});

it('a request is dropped when its message was acknowledged or a new copy of it came (R7)', async () => {
  const { clock, queue, handedOver } = world();
  const requests = [queue.add('1:0', idOf(0)), queue.add('1:1', idOf(1))];
  queue.forget('1:0');
  await clock.advanceBy(0);
  await Promise.all(requests);
  expect(handedOver).toEqual(['1:1']);
});

it('a lost connection drops all requests, since everything comes again; what is asked for later goes on', async () => {
  const { clock, queue, handedOver } = world();
  const first = queue.add('1:0', idOf(0));
  queue.clear();
  const second = queue.add('1:1', idOf(1));
  await clock.advanceBy(0);
  await Promise.all([first, second]);
  expect(handedOver).toEqual(['1:1']);
});

it('nothing is handed over after a close, and who waits is told', async () => {
  const { clock, queue, handedOver } = world();
  const request = queue.add('1:0', idOf(0));
  queue.close();
  await Promise.all([request, queue.add('1:1', idOf(1))]);
  await clock.advanceBy(1_000);
  expect(handedOver).toEqual([]);
});

// The port's type is the client's own.
const _fits: OfficialMessageId = idOf(0);
void _fits;
