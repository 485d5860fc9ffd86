// What the health of a subscription says once its topics are terminated: nothing is wrong, and nothing comes any more.
import { expect, it } from 'vitest';
import { defineHandler, retry, success, topic } from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

const ENDED = 'all of its topics were terminated, and everything on them is acknowledged';

it.each([false, true])(
  'G-13: a subscription says that its topics have ended after the last acknowledgement, with retry topic: %s',
  async (retryTopic) => {
    const world = new World();
    const handler = defineHandler({
      name: 'h',
      source: [topic('one'), topic('two')],
      subscription: 's',
      retryTopic,
      handle: ({ attempt }) => (attempt === 1 ? retry('once more') : success()),
    });
    const runtime = await world.start({ handlers: [handler] });
    const health = () => runtime.health().map(({ state, reason }) => [state, reason]);
    await world.publish('one', 1);
    world.broker.terminate('one');
    await world.clock.advanceBy(60_000);
    expect(health()).toEqual([['running', undefined]]);
    await world.publish('two', 2);
    world.broker.terminate('two');
    await world.clock.advanceBy(0);
    expect(health()).toEqual([['running', undefined]]);
    await world.clock.advanceBy(60_000);
    expect(health()).toEqual([['running', ENDED]]);
    await runtime.drain();
  },
);
