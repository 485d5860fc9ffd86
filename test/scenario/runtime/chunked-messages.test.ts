// Messages in chunks in a whole runtime: what happens to them when their key moves to another process.
import { afterEach, expect, it } from 'vitest';
import { defineHandler, minutes, success, topic } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { World } from '../../support/runtime-world.js';

const CHUNK_BYTES = 1_024;

let world: World;
afterEach(() => world.end());

// Which keys move is the broker's to decide: of these some do, and some stay.
it.each(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'])(
  'a key (%s) that moves while half of a message in chunks is in its old process reaches the new one',
  async (key) => {
    world = new World();
    const runs: string[] = [];
    const start = (process: number) =>
      world.start({
        handlers: [
          defineHandler({
            ...{ name: 'files', source: topic('files'), subscription: 's', type: 'key-shared', prefetch: 2 },
            handle: ({ payload, attempt }) => {
              runs.push(`process ${process}: ${String(payload).slice(0, 5)}#${attempt}`);
              return success();
            },
          }),
        ],
      });
    const first = await start(1);
    first.subscription('s', 'files').pause();
    const publisher = await embedded({ broker: world.broker }).publisher('files', {
      chunking: true,
      maxChunkBytes: CHUNK_BYTES,
    });
    for (const text of [`large${'.'.repeat(5 * CHUNK_BYTES)}`, 'small']) {
      const message = { payload: Buffer.from(JSON.stringify(text)), properties: {}, key };
      await publisher.publish(message, publisher.nextSequenceId());
    }
    await world.clock.advanceBy(10);

    await start(2);
    first.subscription('s', 'files').resume();
    await world.clock.advanceBy(minutes(3));
    await publisher.close();
    expect([1, 2].map((at) => [`process ${at}: large#1`, `process ${at}: small#1`])).toContainEqual(runs);
    expect(world.backlog('files', 's')).toBe(0);
  },
);
