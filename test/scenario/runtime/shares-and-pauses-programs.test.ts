// Random programs (seeded) over fairness, order and the delivery pause together, with failures, deferrals, outages, lost
// connections and pauses of an operator: every message comes to its end, in the order of its key, within its tenant's share.
import { expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome } from '../../../src/index.js';
import {
  defer,
  defineHandler,
  dependencyDown,
  fixedBackoff,
  hours,
  minutes,
  poison,
  retry,
  retryAfter,
  seconds,
  success,
} from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';
import { scattered } from '../../support/seeded.js';

const MESSAGES = 80;
const TENANTS = 3;
const KEYS_PER_TENANT = 2;
const MAX_CONCURRENT = 2;

class Program {
  readonly world = new World();
  readonly #random: () => number;
  readonly #running = new Map<string, number>();
  /** Numbers of each key in the order in which they came to their end. */
  readonly ended = new Map<string, number[]>();
  /** More runs of a tenant at a time than its share; a probe of an outage may be one. */
  over = 0;
  #probes = false;

  constructor(seed: number) {
    this.#random = scattered(seed);
  }

  below(n: number): number {
    return Math.floor(this.#random() * n);
  }

  options(): HandlerOptions {
    const ordering = this.below(3) > 0 ? 'key' : 'none';
    const windowSize = 1 + this.below(6);
    return {
      type: 'key-shared',
      ordering,
      ...(ordering === 'key' && { orderedNegativeAck: this.below(2) === 0 ? 'disabled' : 'best-effort' }),
      concurrency: 1 + this.below(8),
      maxLaneMessages: [1, 5, 1_000][this.below(3)],
      redelivery: { maxDeliveries: 3, backoff: fixedBackoff(this.below(3) * 700) },
      fairness: {
        by: ({ properties }) => properties['tenant'],
        maxConcurrent: MAX_CONCURRENT,
        ratePerSecond: [undefined, 0.5, 20][this.below(3)],
      },
      deliveryPause: { windowSize, failureRatio: [0.3, 0.6, 1][this.below(3)], maxDelayMs: seconds(10) },
    };
  }

  readonly handle = async ({ properties, key = '', payload }: Delivery): Promise<Outcome> => {
    const tenant = properties['tenant'] ?? '';
    const now = (this.#running.get(tenant) ?? 0) + 1;
    this.#running.set(tenant, now);
    if (now > MAX_CONCURRENT + (this.#probes ? 1 : 0)) this.over++;
    const ms = this.below(400);
    if (ms > 0) await new Promise<void>((resolve) => void this.world.clock.setTimer(ms, resolve));
    this.#running.set(tenant, (this.#running.get(tenant) ?? 0) - 1);
    const outcome = this.#outcome();
    if (outcome.kind === 'success') this.ended.set(key, [...(this.ended.get(key) ?? []), Number(payload)]);
    return outcome;
  };

  #outcome(): Outcome {
    const kind = this.below(20);
    if (kind < 4) return retry();
    if (kind === 4) return retryAfter(this.below(5_000));
    if (kind === 5) return defer(this.below(20_000));
    if (kind === 6) return poison('never');
    if (kind > 7) return success();
    this.#probes = true;
    return dependencyDown('bank', { retryAfterMs: this.below(2_000) });
  }
}

it.each(Array.from({ length: 20 }, (_, i) => i + 1))('seed %d', async (seed) => {
  const program = new Program(seed);
  const { world } = program;
  const options = program.options();
  const { handle } = program;
  const handler = defineHandler({ name: 'h', source: 'letters', subscription: 's', ...options, handle });
  const runtime = await world.start({ handlers: [handler] });
  const subscription = runtime.subscription('s', 'letters');
  for (let number = 1; number <= MESSAGES; number++) {
    const tenant = `t${program.below(TENANTS)}`;
    const key = `${tenant}/${program.below(KEYS_PER_TENANT)}`;
    await world.publish('letters', number, { key, properties: { tenant } });
    const step = program.below(12);
    if (step === 0) world.broker.unload('letters');
    if (step === 1) subscription.pause();
    if (step === 2) subscription.resume();
    if (step > 6) await world.clock.advanceBy(program.below(1_000));
  }
  subscription.resume();
  await world.clock.advanceBy(hours(2));

  expect([world.backlog('letters', 's'), program.over]).toEqual([0, 0]);
  expect(runtime.health()[0]).toMatchObject({ running: 0, kept: 0, held: 0, throttled: 0, waitingKeys: 0 });
  const dead = await world.deadLetters('letters', 's');
  const ended = new Set([...program.ended.values()].flat());
  expect(ended.size + dead.length).toBeGreaterThanOrEqual(MESSAGES);
  if (options.ordering === 'key')
    for (const numbers of program.ended.values()) {
      const first = [...new Set(numbers)];
      expect(first).toEqual(first.toSorted((a, b) => a - b));
    }
  await world.clock.advanceBy(minutes(1));
  await world.end();
});
