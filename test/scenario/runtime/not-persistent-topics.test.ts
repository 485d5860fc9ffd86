// Handlers of topics that are not persistent: all messages come with the place 0:0, and none of them again.
import { describe, expect, it } from 'vitest';
import type { HandlerDefinition, Outcome } from '../../../src/index.js';
import { defineHandler, fixedBackoff, minutes, poison, retry, seconds, success, topic } from '../../../src/index.js';
import type { TestRuntime } from '../../../src/testing.js';
import { testRuntime } from '../../../src/testing.js';

const prices = topic<string>('non-persistent://public/default/prices');
const alarms = topic<string>('alarms');

function handler(
  handle: (payload: string, attempt: number) => Outcome | Promise<Outcome>,
  more: object = {},
): HandlerDefinition {
  return defineHandler({
    name: 'h',
    source: prices,
    subscription: 's',
    redelivery: { maxDeliveries: 3, backoff: fixedBackoff(minutes(20)) },
    ...more,
    handle: ({ payload, attempt }) => handle(payload, attempt),
  });
}

function settlements(kit: TestRuntime): unknown[] {
  return kit.outcomes().map(({ attempt, outcome, settlement }) => `${attempt} ${outcome} ${settlement}`);
}

async function publish(kit: TestRuntime, ...payloads: string[]): Promise<void> {
  for (const payload of payloads) await kit.publish(prices, payload);
  await kit.settled();
}

describe('a handler of a topic that is not persistent', () => {
  it('gets every message, and its follow-ups have ids of their own', async () => {
    const seen: string[] = [];
    const all = handler((payload) => {
      seen.push(payload);
      return success(alarms.message(payload));
    });
    await using kit = await testRuntime([all]);
    await publish(kit, 'a', 'b', 'c');

    expect(seen).toEqual(['a', 'b', 'c']);
    const ids = kit.published(alarms).map(({ properties }) => properties['pulsework-message-id']);
    expect(new Set(ids).size).toBe(3);
  });

  it.each(['shared', 'key-shared', 'failover'] as const)('%s: waits here for what it retries', async (type) => {
    const twice = handler((payload, attempt) => (payload === 'bad' && attempt < 3 ? retry('later') : success()), {
      type,
    });
    await using kit = await testRuntime([twice]);
    await publish(kit, 'bad', 'good');
    await kit.advanceBy(minutes(41));

    expect(settlements(kit).toSorted()).toEqual([
      '1 retry redeliver',
      '1 success acknowledge',
      '2 retry redeliver',
      '3 success acknowledge',
    ]);
  });

  it('waits for retry letters, which come at once there, and dead letters say why', async () => {
    const never = handler(() => retry('no'), { retryTopic: true, deadLetterTopic: 'graveyard' });
    await using kit = await testRuntime([never]);
    await publish(kit, 'a', 'b');
    expect(settlements(kit)).toHaveLength(2);
    await kit.advanceBy(minutes(20) - 1);
    expect(settlements(kit)).toHaveLength(2);
    await kit.advanceBy(minutes(21));

    expect(settlements(kit).slice(4)).toEqual(['3 retry dead-letter', '3 retry dead-letter']);
    expect(kit.deadLetters(prices)).toMatchObject([
      { payload: 'a', reason: 'no', attempts: 3 },
      { payload: 'b', reason: 'no', attempts: 3 },
    ]);
  });

  it('drains, with one that runs and one that waits', async () => {
    const kit = await testRuntime([
      handler((payload) => (payload === 'slow' ? new Promise<never>(() => undefined) : retry('later'))),
    ]);
    await publish(kit, 'slow', 'waits');
    await kit.close();

    expect([kit.runtime.state, kit.clock.pendingTimers]).toEqual(['closed', []]);
  });
});

it('the kit tells what was published to topics that are not persistent, also where nobody takes it', async () => {
  await using kit = await testRuntime([
    handler(() => poison('no'), { deadLetterTopic: 'non-persistent://public/default/x' }),
  ]);
  await publish(kit, 'a');
  await kit.publish('non-persistent://public/default/nobody', 5, { properties: { n: '1' } });
  await kit.advanceBy(seconds(1));

  expect(kit.published(prices)).toMatchObject([{ payload: 'a' }]);
  expect(kit.published('non-persistent://public/default/nobody')).toMatchObject([
    { payload: 5, properties: { n: '1' } },
  ]);
  expect(kit.deadLetters(prices)).toMatchObject([{ payload: 'a', reason: 'no' }]);
});
