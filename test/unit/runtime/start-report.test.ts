// The line per handler that a runtime logs at start.
import { describe, expect, it } from 'vitest';
import type { HandlerOptions } from '../../../src/index.js';
import { defineHandler, exponentialBackoff, hours, minutes, success, topic } from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

describe('the start-up report', () => {
  it('says for each handler how its delays wait', async () => {
    const world = new World();
    const backoff = exponentialBackoff({ minMs: minutes(4), maxMs: hours(1) });
    const redelivery = { maxDeliveries: 4, backoff };
    const handler = (name: string, options: Partial<HandlerOptions>) =>
      defineHandler({ ...options, name, source: topic(name), subscription: 's', handle: () => success() });
    await world.start({
      handlers: [
        handler('plain', { redelivery }),
        handler('letters', { redelivery, retryTopic: true }),
        handler('ordered', { redelivery, type: 'key-shared', ordering: 'key' }),
        handler('once', { redelivery: { maxDeliveries: 1 }, deadLetter: 'skip' }),
        handler('failing', { redelivery: { maxDeliveries: 2, backoff: () => NaN } }),
      ],
    });

    const lines = world.log.filter(({ message }) => message === 'handler started');
    expect(lines.map(({ level, fields }) => [level, fields['handler'], fields['waits']])).toEqual([
      ['info', 'plain', 'held by id (4 min to 8 min), held by id (long, but there is no retry letter topic) (16 min)'],
      ['info', 'letters', 'held by id (4 min to 8 min), published again (16 min)'],
      [
        'info',
        'ordered',
        'held by id where the broker keeps the order of its key, else kept in place (4 min to 16 min)',
      ],
      ['info', 'once', 'none: a message is delivered once'],
      [
        'info',
        'failing',
        'held by id (1 s); the default where the policy fails: a backoff must give milliseconds of 0 or more, got NaN on redelivery 0',
      ],
    ]);
    expect(lines[3]?.fields).toMatchInlineSnapshot(`
      {
        "deferrals": "kept in place",
        "delayedDelivery": "broker",
        "givenUp": "acknowledged without a dead letter: the message is gone",
        "handler": "once",
        "maxDeliveries": 1,
        "ordering": "none",
        "subscription": "s",
        "topics": [
          "persistent://public/default/once",
        ],
        "type": "shared",
        "waits": "none: a message is delivered once",
      }
    `);
    await world.end();
  });
});
