// Random mixtures of everything that makes a message wait, while connections are cut, topics unloaded, subscriptions paused
// and runtimes drained: nothing lost, no attempt too high, no loop, nothing left behind.
import { describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome, Runtime, Transport } from '../../../src/index.js';
import {
  TransportError,
  defer,
  defineHandler,
  dependencyDown,
  hours,
  idempotent,
  memoryIdempotencyStore,
  minutes,
  on,
  poison,
  retry,
  retryAfter,
  seconds,
  skip,
  success,
  topic,
} from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { AttemptMemory, memoryAttemptStore } from '../../../src/testing.js';
import { World } from '../../support/runtime-world.js';
import { CutTransport } from '../../support/cut-transport.js';
import { unhandledDuring } from '../../support/unhandled.js';
import { scattered } from '../../support/seeded.js';
import { transportWith } from '../../support/transport-with.js';

const MESSAGES = 40;
const MAX_DELIVERIES = 5;
const receipts = topic('receipts');

interface Kind {
  readonly type: 'shared' | 'key-shared' | 'failover' | 'exclusive';
  readonly ordering: 'none' | 'key' | 'partition';
}

class Storm {
  readonly world = new World();
  readonly random: () => number;
  readonly problems: string[] = [];
  readonly failures = new Map<number, number>();
  readonly finished = new Set<number>();
  readonly memory = new AttemptMemory();
  readonly store = memoryIdempotencyStore();
  readonly uses: ReturnType<typeof featuresOf>;
  readonly kind: Kind;
  cut!: CutTransport;
  runs = 0;
  calls = 0;
  down = false;
  calm = false;
  refuseLetters = false;

  constructor(seed: number, kind: Kind) {
    this.random = scattered(seed);
    this.kind = kind;
    this.uses = featuresOf(this.random, kind);
  }

  start(): Promise<Runtime> {
    this.cut = new CutTransport(this.counted(embedded({ broker: this.world.broker })));
    const { batch, attempts } = this.uses;
    const common = { name: 'h', source: topic('orders'), subscription: 's', ...this.options() };
    const handler =
      batch === undefined
        ? defineHandler({ ...common, handle: (d) => this.handle(d) })
        : defineHandler({ ...common, batch, handle: (all) => Promise.all(all.map((d) => this.handle(d))) });
    return this.world.start({
      transport: this.cut.transport,
      random: this.random,
      handlers: [handler],
      ...(attempts ? { attemptStore: memoryAttemptStore({ memory: this.memory }) } : {}),
    });
  }

  options(): HandlerOptions {
    const { uses } = this;
    return {
      ...this.kind,
      concurrency: uses.concurrency,
      redelivery: { maxDeliveries: MAX_DELIVERIES, backoff: () => uses.backoffMs },
      maxHeld: uses.maxHeld,
      maxLaneMessages: uses.maxLaneMessages,
      retryTopic: uses.retryTopic,
      delayedDelivery: uses.delayedDelivery,
      // For the errors of messages: one that was only told to end must not meet it.
      onError: [on(Error, poison)],
      ...(uses.timeout ? { timeoutMs: 300, abandonAfterMs: 200 } : {}),
      ...(uses.ackTimeout ? { ackTimeoutMs: 1_000 } : {}),
      ...(uses.idempotent
        ? {
            idempotent: idempotent({
              key: ({ payload }) => String(payload),
              store: this.store,
              ttlMs: hours(24),
              leaseMs: seconds(3),
            }),
          }
        : {}),
    };
  }

  private checkAttempt(id: number, attempt: number, failed: number): void {
    if (attempt > failed + 1) this.problems.push(`${id}: attempt ${attempt} after ${failed} failures`);
    if (attempt > MAX_DELIVERIES) this.problems.push(`${id}: attempt ${attempt} of ${MAX_DELIVERIES}`);
  }

  async handle(d: Delivery): Promise<Outcome> {
    const id = Number(d.payload);
    this.runs += 1;
    const failed = this.failures.get(id) ?? 0;
    this.checkAttempt(id, d.attempt, failed);
    const spent = (): void => {
      this.failures.set(id, Math.max(failed + 1, this.failures.get(id) ?? 0));
      if (d.attempt >= MAX_DELIVERIES) this.finished.add(id);
    };
    // Set by the signal, while the run goes on.
    const limit = { passed: false };
    d.signal.addEventListener('abort', () => {
      limit.passed = (d.signal.reason as { code?: string }).code === 'HANDLER_TIMED_OUT';
      if (limit.passed) spent();
    });
    const long = !this.calm && this.uses.slow && this.random() < 0.1;
    await this.wait(this.random() * (long ? 3_000 : 200));
    if (d.signal.aborted && id % 2 === 0) throw d.signal.reason as Error;
    const outcome = this.outcome(d.attempt);
    if (outcome.kind === 'retry' || outcome.kind === 'retry-after') spent();
    // A late one does not count, but is recorded where the handler is idempotent.
    if (limit.passed && !this.uses.idempotent) return outcome;
    if (outcome.kind === 'success' || outcome.kind === 'skip' || outcome.kind === 'poison') this.finished.add(id);
    return outcome;
  }

  outcome(attempt: number): Outcome {
    const dice = this.random();
    if (this.calm) return success();
    if (this.down && dice < 0.5) return dependencyDown('bank', { retryAfterMs: 200 });
    if (dice < 0.55) return attempt % 2 === 0 ? success() : success(receipts.message(1));
    if (dice < 0.65) return retry();
    if (dice < 0.7) return retryAfter(this.random() * 3_000);
    if (dice < 0.74) return retryAfter(minutes(11));
    if (dice < 0.8) return defer(1 + this.random() * 2_000);
    if (dice < 0.83) return defer(minutes(12));
    if (dice < 0.9) return poison('x');
    if (dice < 0.93) return skip('x');
    return retry('x', { backoff: () => 50 });
  }

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.world.clock.setTimer(ms, resolve));
  }

  async publishAll(): Promise<void> {
    const { producerBatches, delayed } = this.uses;
    if (producerBatches) {
      for (let i = 0; i < MESSAGES; i += 5) await this.world.publishBatch('orders', [i, i + 1, i + 2, i + 3, i + 4]);
      return;
    }
    for (let i = 0; i < MESSAGES; i++) {
      const deliverAtMs = delayed && this.random() < 0.3 ? this.world.clock.now() + this.random() * 5_000 : undefined;
      await this.world.publish('orders', i, { key: `k${i % 6}`, deliverAtMs });
    }
  }

  /** One thing that happens from outside. */
  async event(runtime: Runtime): Promise<void> {
    const dice = this.random();
    if (dice < 0.35) {
      const links = this.cut.links.filter(() => this.random() < 0.7);
      for (const link of links) await link.cut();
      await this.world.clock.advanceBy(this.random() < 0.5 ? 0 : this.random() * 2_000);
      for (const link of links) await link.open();
    } else if (dice < 0.5) this.world.broker.unload('orders');
    else if (dice < 0.6) {
      runtime.subscription('s', 'orders').pause();
      await this.world.clock.advanceBy(this.random() * 2_000);
      runtime.subscription('s', 'orders').resume();
    } else if (dice < 0.75) this.down = !this.down;
    else if (dice < 0.85) this.cut.publishFails = !this.cut.publishFails;
    else this.refuseLetters = !this.refuseLetters;
  }

  counted(inner: Transport): Transport {
    const count = <T>(call: () => T): T => {
      this.calls += 1;
      return call();
    };
    return transportWith(inner, {
      publisher: async (name, options) => {
        const publisher = await inner.publisher(name, options);
        return {
          topic: name,
          nextSequenceId: () => publisher.nextSequenceId(),
          publish: (message, id) =>
            count(() =>
              this.refuseLetters && name.endsWith('-RETRY')
                ? Promise.reject(new TransportError('NOT_SUPPORTED', 'refused', { retriable: false }))
                : publisher.publish(message, id),
            ),
          close: () => publisher.close(),
        };
      },
      subscribe: async (spec) => {
        const subscription = await inner.subscribe(spec);
        const acknowledge = subscription.acknowledge.bind(subscription);
        const redeliver = subscription.redeliver.bind(subscription);
        subscription.acknowledge = (ids) => count(() => acknowledge(ids));
        subscription.redeliver = (ids) => count(() => redeliver(ids));
        return subscription;
      },
    });
  }
}

function featuresOf(random: () => number, { type, ordering }: Kind) {
  const some = (share: number): boolean => random() < share;
  const single = type === 'shared' || type === 'key-shared';
  const mayPass = single && ordering === 'none';
  const producerBatches = type !== 'key-shared' && some(0.3);
  return {
    producerBatches,
    batch: some(0.4) ? { maxMessages: 4, maxWaitMs: 150 } : undefined,
    attempts: some(0.4),
    retryTopic: mayPass && some(0.5),
    delayedDelivery: some(0.5) ? ('client' as const) : ('auto' as const),
    delayed: some(0.5),
    timeout: some(0.4),
    ackTimeout: mayPass && some(0.4),
    idempotent: some(0.3),
    slow: some(0.5),
    concurrency: 1 + Math.floor(random() * 5),
    backoffMs: some(0.2) ? minutes(11) : 700,
    maxHeld: some(0.3) ? 3 : 1_000,
    maxLaneMessages: some(0.3) ? 2 : 1_000,
  };
}

async function play(seed: number, kind: Kind, restarts: boolean): Promise<Storm> {
  const storm = new Storm(seed, kind);
  const { world } = storm;
  let runtime = await storm.start();
  await storm.publishAll();
  for (let i = 0; i < 20; i++) {
    await world.clock.advanceBy(storm.random() * 1_500);
    await storm.event(runtime);
    if (!restarts || storm.random() > 0.2) continue;
    const startMs = world.clock.now();
    let endMs: number | undefined;
    const draining = runtime.drain({ deadlineMs: storm.random() * 2_000 });
    void draining.then(() => (endMs = world.clock.now()));
    await world.clock.advanceBy(seconds(40));
    if (endMs === undefined || endMs - startMs > 3_050)
      storm.problems.push(`a drain took ${String((endMs ?? Infinity) - startMs)} ms`);
    runtime = await storm.start();
  }
  storm.down = false;
  storm.cut.publishFails = false;
  storm.refuseLetters = false;
  await world.clock.advanceBy(minutes(1));
  storm.calm = true;
  await world.clock.advanceBy(hours(12));
  const finishing = runtime.close();
  await world.clock.advanceBy(seconds(40));
  await finishing;
  return storm;
}

const KINDS: readonly Kind[] = [
  { type: 'shared', ordering: 'none' },
  { type: 'key-shared', ordering: 'none' },
  { type: 'key-shared', ordering: 'key' },
  { type: 'failover', ordering: 'partition' },
  { type: 'exclusive', ordering: 'none' },
];
const SEEDS = [1, 2, 3];

describe('a storm', () => {
  it.each(
    KINDS.flatMap((kind) => [false, true].flatMap((restarts) => SEEDS.map((seed) => ({ ...kind, restarts, seed })))),
  )('loses nothing: $type, ordering $ordering, restarts $restarts, seed $seed', async ({ restarts, seed, ...kind }) => {
    let storm: Storm | undefined;
    const unhandled = await unhandledDuring(async () => {
      storm = await play(seed, kind, restarts);
    });
    const { world, problems, finished, uses } = storm!;
    const missing = Array.from({ length: MESSAGES }, (_, i) => i).filter((id) => !finished.has(id));
    const faults = world.log.filter(({ message }) => message.includes('must not')).map(({ fields }) => fields['error']);
    expect(
      {
        problems: problems.slice(0, 5),
        missing,
        faults: faults.slice(0, 2),
        unhandled,
        backlog: [world.backlog('orders', 's'), uses.retryTopic ? world.backlog('orders-s-RETRY', 's') : 0],
        timers: world.clock.pendingTimers,
        tooManyRuns: storm!.runs > MESSAGES * 100 ? storm!.runs : 0,
        tooManyCalls: storm!.calls > MESSAGES * 100 ? storm!.calls : 0,
      },
      JSON.stringify(uses),
    ).toEqual({
      problems: [],
      missing: [],
      faults: [],
      unhandled: [],
      backlog: [0, 0],
      timers: [],
      tooManyRuns: 0,
      tooManyCalls: 0,
    });
  });
});
