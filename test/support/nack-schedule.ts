// How long a message of a real broker stays away after each of five negative acknowledgements, and whether that is the
// doubling schedule: the gate runs it with a short minimum, the campaign with the default one.
import type { ReceivedMessage } from '../../src/core/message.js';
import { WireClient, exponentialBackoff } from '../../src/wire.js';
import type { WireConsumer } from '../../src/wire.js';
import { receive } from './received.js';

const NACKS = 5;
/** For timers, the broker, and the way there and back on a busy machine. */
const LATE_MS = 1_500;
/** The broker's answer may be read in the millisecond before the clock has counted to its end. */
const EARLY_MS = 2;

export interface NackSchedule {
  /** The broker's count at each arrival, the first included. */
  readonly counts: readonly number[];
  /** Between each negative acknowledgement and the next arrival, milliseconds. */
  readonly waitsMs: readonly number[];
}

/** @param topic has one message at least, which is acknowledged in the end. */
export async function nackSchedule(serviceUrl: string, topic: string, minMs: number): Promise<NackSchedule> {
  const client = new WireClient({ serviceUrl });
  try {
    const negativeAckBackoff = exponentialBackoff({ minMs });
    const consumer = await client.subscribe({ topics: [topic], subscription: 's', negativeAckBackoff });
    return await nackFiveTimes(consumer, minMs);
  } finally {
    await client.close();
  }
}

async function nackFiveTimes(consumer: WireConsumer, minMs: number): Promise<NackSchedule> {
  const quietMs = minMs * 2 ** NACKS + 10_000;
  let message = await next(consumer, quietMs);
  const counts = [message.redeliveryCount];
  const waitsMs: number[] = [];
  for (let nack = 0; nack < NACKS; nack++) {
    const since = performance.now();
    consumer.negativeAcknowledge(message);
    message = await next(consumer, quietMs);
    waitsMs.push(performance.now() - since);
    counts.push(message.redeliveryCount);
  }
  await consumer.acknowledge([message.id]);
  return { counts, waitsMs };
}

async function next(consumer: WireConsumer, quietMs: number): Promise<ReceivedMessage> {
  const [message] = await receive(consumer, 1, quietMs);
  if (message === undefined) throw new Error(`no message came within ${quietMs} ms`);
  return message;
}

/** What is not as it must be, a sentence each. */
export function offSchedule({ counts, waitsMs }: NackSchedule, minMs: number): readonly string[] {
  const expected = counts.map((_, arrival) => arrival);
  const wrongCounts = counts.join() === expected.join() ? [] : [`the counts were ${counts.join()}`];
  const wrongWaits = waitsMs.flatMap((ms, nack) => {
    const dueMs = minMs * 2 ** nack;
    if (ms > dueMs - EARLY_MS && ms < dueMs + LATE_MS) return [];
    return [`negative acknowledgement ${nack + 1} waited ${ms.toFixed(0)} ms instead of ${dueMs}`];
  });
  return [...wrongCounts, ...wrongWaits];
}
