// Subscriptions that share a dependency, while it goes down and comes back, connections are cut, topics unloaded and
// subscriptions paused: nobody waits for ever, no attempt is spent, and what is down is asked by a probe only.
import { describe, expect, it } from 'vitest';
import type { Delivery, HandlerDefinition, HandlerOptions, Outcome, Runtime } from '../../../src/index.js';
import { defineHandler, dependencyDown, minutes, seconds, success, topic } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { memoryAttemptStore } from '../../../src/testing.js';
import { World } from '../../support/runtime-world.js';
import { CutTransport } from '../../support/cut-transport.js';
import { scattered } from '../../support/seeded.js';

class BankDown extends Error {}

const TOPICS = ['a', 'b', 'c'];
const KINDS: readonly HandlerOptions[] = [
  {},
  { type: 'key-shared', ordering: 'key' },
  { type: 'failover', ordering: 'partition' },
  { retryTopic: true },
];
const RULE = { outage: [{ dependency: 'bank', errors: [BankDown], retryAfterMs: 200 }] };

class Storm {
  readonly world = new World();
  readonly random: () => number;
  readonly cut = new CutTransport(embedded({ broker: this.world.broker }));
  readonly #paused = new Set<string>();
  readonly spent: string[] = [];
  down = false;
  asked = 0;
  runtime!: Runtime;

  constructor(seed: number) {
    this.random = scattered(seed);
  }

  async start(): Promise<void> {
    const batches = this.random() < 0.4;
    const handlers = TOPICS.map((name) => this.handler(name, batches));
    const stores = this.random() < 0.5 ? { attemptStore: memoryAttemptStore() } : {};
    this.runtime = await this.world.start({ transport: this.cut.transport, handlers, ...stores });
    for (let i = 0; i < 30; i++) for (const name of TOPICS) await this.world.publish(name, i, { key: `k${i % 4}` });
  }

  handler(name: string, batches: boolean): HandlerDefinition {
    const kind = KINDS[Math.floor(this.random() * KINDS.length)] ?? {};
    const concurrency = 1 + Math.floor(this.random() * 4);
    const common = { name, source: topic(name), subscription: 's', concurrency, ...RULE, ...kind };
    if (!batches) return defineHandler({ ...common, handle: (d) => this.ask(d) });
    const batch = { maxMessages: 3, maxWaitMs: 50 };
    return defineHandler({ ...common, batch, handle: (all) => Promise.all(all.map((d) => this.ask(d))) });
  }

  async ask({ attempt, handler }: Delivery): Promise<Outcome> {
    if (attempt > 1) this.spent.push(`${handler}#${attempt}`);
    this.asked += 1;
    await new Promise<void>((resolve) => this.world.clock.setTimer(this.random() * 100, resolve));
    if (!this.down) return success();
    if (this.random() < 0.5) throw new BankDown('no connection');
    return dependencyDown('bank', { retryAfterMs: 300 });
  }

  async event(): Promise<void> {
    const dice = this.random();
    const name = TOPICS[Math.floor(this.random() * TOPICS.length)] ?? 'a';
    if (dice < 0.3) this.down = !this.down;
    else if (dice < 0.6) await this.#cut(this.cut.links[Math.floor(this.random() * this.cut.links.length)]);
    else if (dice < 0.7) this.world.broker.unload(name);
    else if (dice < 0.9) this.#togglePause(name);
  }

  async #cut(link: CutTransport['links'][number] | undefined): Promise<void> {
    await link?.cut();
    await this.world.clock.advanceBy(this.random() * 500);
    await link?.open();
  }

  #togglePause(name: string): void {
    const subscription = this.runtime.subscription('s', name);
    if (this.#paused.delete(name)) return subscription.resume();
    this.#paused.add(name);
    subscription.pause();
  }

  resumeAll(): void {
    for (const name of [...this.#paused]) this.#togglePause(name);
  }
}

describe('a dependency that three subscriptions share', () => {
  it.each(Array.from({ length: 20 }, (_, i) => i + 1))('is left in order, seed %i', async (seed) => {
    const storm = new Storm(seed);
    const { world } = storm;
    await storm.start();
    for (let i = 0; i < 25; i++) {
      await world.clock.advanceBy(storm.random() * 800);
      await storm.event();
    }
    storm.resumeAll();
    storm.down = true;
    await world.clock.advanceBy(minutes(20));
    const before = storm.asked;
    await world.clock.advanceBy(minutes(60));
    const askedInAnHour = storm.asked - before;
    storm.down = false;
    await world.clock.advanceBy(minutes(20));
    const closing = storm.runtime.close();
    await world.clock.advanceBy(seconds(40));
    await closing;

    expect(storm.spent).toEqual([]);
    expect(TOPICS.map((name) => world.backlog(name, 's'))).toEqual([0, 0, 0]);
    // One probe a minute.
    expect(askedInAnHour).toBeLessThanOrEqual(61);
    expect(world.clock.pendingTimers).toEqual([]);
  });
});
