// Attempts with an AttemptStore: true across the death of processes, and a message that kills its process becomes a
// dead letter while its neighbours do not.
import { describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome } from '../../../src/index.js';
import {
  Runtime,
  defer,
  defineHandler,
  fatal,
  fixedBackoff,
  retry,
  retryAfter,
  seconds,
  success,
  topic,
} from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { AttemptMemory, FakeClock, memoryAttemptStore } from '../../../src/testing.js';
import { World, payloadOf } from '../../support/runtime-world.js';

class Deaths {
  readonly world = new World();
  readonly memory = new AttemptMemory();
  readonly log: { readonly payload: unknown; readonly attempt: number; readonly beside: number }[] = [];
  #transport = embedded({ broker: this.world.broker });
  #running = 0;
  /** What a run does: an outcome, or the death of its process. */
  does: (delivery: Delivery) => Outcome | 'dies' | 'hangs' = () => success();

  start(options: Partial<HandlerOptions> = {}): Promise<Runtime> {
    this.#transport = embedded({ broker: this.world.broker });
    this.#running = 0;
    const handler = defineHandler({
      name: 'worker',
      source: topic('jobs'),
      subscription: 'workers',
      redelivery: { maxDeliveries: 3, backoff: fixedBackoff(seconds(1)) },
      ...options,
      handle: async (delivery) => {
        this.#running += 1;
        await Promise.resolve();
        this.log.push({ payload: delivery.payload, attempt: delivery.attempt, beside: this.#running - 1 });
        const what = this.does(delivery);
        if (what === 'dies') await this.die();
        if (what === 'dies' || what === 'hangs') return new Promise<never>(() => undefined);
        await Promise.resolve();
        this.#running -= 1;
        return what;
      },
    });
    return this.world.start({
      handlers: [handler],
      transport: this.#transport,
      attemptStore: memoryAttemptStore({ memory: this.memory }),
    });
  }

  /** The process is gone: its connection drops, and nothing it still does reaches the broker or the store. */
  async die(): Promise<void> {
    this.memory.processDied();
    await this.#transport.close();
  }

  async later(ms = seconds(30)): Promise<void> {
    await this.world.clock.advanceBy(ms);
  }
}

describe('with an AttemptStore', () => {
  it('a message that kills its process is a dead letter after maxDeliveries + 1 deaths, its neighbours are handled', async () => {
    const deaths = new Deaths();
    deaths.world.endsEarly = true;
    deaths.does = ({ payload }) => (payload === 'killer' ? 'dies' : success());
    for (const value of ['a', 'b', 'killer', 'c', 'd']) await deaths.world.publish('jobs', value);
    let restarts = 0;
    for (; restarts < 10; restarts++) {
      await deaths.start();
      await deaths.later();
      if (deaths.world.backlog('jobs', 'workers') === 0) break;
    }

    const letters = await deaths.world.deadLetters('jobs', 'workers');
    expect(letters.map(payloadOf)).toEqual(['killer']);
    expect(letters[0]?.properties).toMatchObject({ 'pulsework-cause': 'process-died', 'pulsework-attempt': '3' });
    expect(restarts).toBe(4);
    // After the first death it ran alone each time.
    const kills = deaths.log.filter(({ payload }) => payload === 'killer');
    expect(kills.slice(1).map(({ beside }) => beside)).toEqual([0, 0, 0]);
    await deaths.world.end();
  });

  it('a failed attempt before a crash counts after it', async () => {
    const deaths = new Deaths();
    deaths.does = () => retry();
    await deaths.world.publish('jobs', 'a');
    await deaths.start({ type: 'exclusive' });
    await deaths.later(100);
    await deaths.die();
    await deaths.start({ type: 'exclusive' });
    await deaths.later();

    expect(deaths.log.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(await deaths.world.deadLetters('jobs', 'workers')).toHaveLength(1);
    await deaths.world.end();
  });

  it('a wait goes on in the next process where the first left it', async () => {
    const deaths = new Deaths();
    const startMs = deaths.world.clock.now();
    const at: number[] = [];
    deaths.does = ({ attempt }) => (
      at.push(deaths.world.clock.now() - startMs),
      attempt === 1 ? retryAfter(seconds(20)) : success()
    );
    await deaths.world.publish('jobs', 'a');
    const first = await deaths.start();
    await deaths.later(seconds(5));
    await deaths.world.drain(first, 0);
    await deaths.start();
    await deaths.later(seconds(60));

    expect(at[0]).toBe(0);
    expect(at[1]).toBeGreaterThanOrEqual(seconds(20));
    expect(deaths.log.map(({ attempt }) => attempt)).toEqual([1, 2]);
    await deaths.world.end();
  });

  it('defer spends none, fatal spends one', async () => {
    const deaths = new Deaths();
    const says = [defer(10), fatal('stop'), success()];
    deaths.does = () => says[deaths.log.length - 1] ?? success();
    await deaths.world.publish('jobs', 'a');
    await deaths.start();
    await deaths.later();
    await deaths.start();
    await deaths.later();

    expect(deaths.log.map(({ attempt }) => attempt)).toEqual([1, 1, 2]);
    await deaths.world.end();
  });

  it('nothing is left of what was acknowledged or dead-lettered', async () => {
    const deaths = new Deaths();
    deaths.does = ({ payload, attempt }) => (payload === 'bad' || attempt === 1 ? retry() : success());
    for (const value of ['a', 'bad', 'b']) await deaths.world.publish('jobs', value);
    const runtime = await deaths.start();
    await deaths.later();
    await deaths.world.drain(runtime, 0);
    const store = memoryAttemptStore({ memory: deaths.memory });

    expect(await store.open()).toEqual({ records: 0, suspects: 0 });
    await store.close();
  });

  it('a drain gives back what waits for its turn beside a suspect, and starts nothing more', async () => {
    const deaths = new Deaths();
    for (const value of ['killer', 'a']) await deaths.world.publish('jobs', value);
    deaths.does = ({ payload }) => (payload === 'killer' ? 'dies' : 'hangs');
    await deaths.start();
    await deaths.later();
    // Both were running when it died: each runs alone now, the first one without end.
    deaths.does = () => 'hangs';
    const runtime = await deaths.start();
    await deaths.later();
    const before = deaths.log.length;
    await deaths.world.drain(runtime, 100);

    expect(deaths.log.length).toBe(before);
    expect(deaths.world.backlog('jobs', 'workers')).toBe(2);
  });

  it('that fails, no handler runs before it works again', async () => {
    const world = new World();
    const store = memoryAttemptStore();
    let broken = true;
    const runs: unknown[] = [];
    const handler = defineHandler({
      name: 'h',
      source: topic('t'),
      subscription: 's',
      handle: ({ payload }) => (runs.push(payload), success()),
    });
    const begin = store.begin.bind(store);
    store.begin = (key, start) => (broken ? Promise.reject(new Error('disk full')) : begin(key, start));
    await world.start({ handlers: [handler], attemptStore: store });
    await world.publish('t', 'a');
    await world.clock.advanceBy(seconds(20));
    expect(runs).toEqual([]);
    broken = false;
    await world.clock.advanceBy(seconds(20));
    expect(runs).toEqual(['a']);
    expect(world.backlog('t', 's')).toBe(0);
    await world.end();
  });
});

describe('an AttemptStore that outlives its embedded broker', () => {
  it('does not blame a message of the next broker for the deaths of another', async () => {
    const memory = new AttemptMemory();
    const handled: string[] = [];
    const clock = new FakeClock();
    const start = async (dies: boolean): Promise<void> => {
      const transport = embedded({ clock });
      const handle = async ({ payload, attempt }: Delivery): Promise<Outcome> => {
        if (!dies) {
          handled.push(`${String(payload)}#${attempt}`);
          return success();
        }
        memory.processDied();
        await transport.close();
        return new Promise<never>(() => undefined);
      };
      const handler = defineHandler({ name: 'h', source: topic('jobs'), subscription: 's', handle });
      const attemptStore = memoryAttemptStore({ memory });
      const { logger } = new World();
      const runtime = await Runtime.start({ transport, handlers: [handler], attemptStore, logger });
      await runtime.publisher(topic('jobs')).publish(dies ? 'killer' : 'innocent');
      await clock.advanceBy(seconds(1));
    };
    await start(true);
    await start(true);
    await start(false);
    expect(handled).toEqual(['innocent#1']);
  });
});
