// Calls that make no sense, as JavaScript or `any` let through: refused by code and name, and nothing was done.
import { describe, expect, it } from 'vitest';
import type { WireConsumer, WireOptions } from '../../../src/wire.js';
import { WireClient } from '../../../src/wire.js';
import { never, section, startClient, startSubscription, textOf } from '../../support/scripted-consumer.js';

const ID_INVALID = { code: 'MESSAGE_ID_INVALID' };
const asAny = (consumer: WireConsumer) => consumer as unknown as Record<string, (...args: unknown[]) => unknown>;
const calling = async (run: () => unknown): Promise<unknown> => run();

describe('a call without sense', () => {
  it.each([undefined, null, 'text', { ledgerId: 1 }])('settles nothing: %j instead of message ids', async (wrong) => {
    const { subscription, server } = await startSubscription({ type: 'exclusive' });
    const consumer = asAny(subscription);

    for (const settle of ['acknowledge', 'redeliver', 'acknowledgeCumulative', 'negativeAcknowledgeId']) {
      await expect(calling(() => consumer[settle]?.(wrong))).rejects.toMatchObject(ID_INVALID);
      if (settle === 'acknowledgeCumulative' || settle === 'negativeAcknowledgeId') continue;
      await expect(calling(() => consumer[settle]?.([wrong]))).rejects.toMatchObject(ID_INVALID);
    }
    await expect(calling(() => consumer['negativeAcknowledge']?.(wrong))).rejects.toMatchObject(ID_INVALID);
    expect(server.received.some(({ name }) => name === 'ACK')).toBe(false);
  });

  it('receives nothing: no signal, and the next one does', async () => {
    const { subscription, deliver } = await startSubscription();
    for (const wrong of [undefined, null, 5, {}]) {
      await expect(asAny(subscription)['receive']?.(wrong)).rejects.toMatchObject({ code: 'CONFIGURATION_INVALID' });
    }

    deliver(1, section('x'));

    expect(textOf(await subscription.receive(never))).toBe('x');
  });

  it('subscribes to nothing', async () => {
    const { client } = await startClient();
    for (const wrong of [undefined, null, 'orders']) {
      const rule = 'subscribe: "options" must be an object';
      await expect(client.subscribe(wrong as never)).rejects.toThrow(rule);
      await expect(client.openSubscription(wrong as never)).rejects.toThrow(rule);
    }
  });

  it('makes no client: what it would call later is looked at first', () => {
    const wrong = { serviceUrl: 'pulsar://localhost', logger: { info: 1 }, clock: 5 } as unknown as WireOptions;

    expect(() => new WireClient(wrong)).toThrow(/wire: "logger" must have the methods .*\n.*wire: "clock" must have/);
  });
});
