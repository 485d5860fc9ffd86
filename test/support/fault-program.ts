// Random programs on an unkind broker: 300 messages in 12 keys, handlers that fail, wait and give up, two processes where the
// type allows it, partitions and batches in some, ten minutes of faults and two hours of peace. Afterwards every message is counted.
import type { Delivery, HandlerOptions, Outcome, SubscriptionType } from '../../src/index.js';
import {
  Runtime,
  consoleLogger,
  defineHandler,
  exponentialBackoff,
  hours,
  minutes,
  poison,
  retry,
  seconds,
  success,
  topic,
} from '../../src/index.js';
import { embedded } from '../../src/embedded.js';
import type { FaultName, FaultOptions, TestRuntime } from '../../src/testing.js';
import { testRuntime } from '../../src/testing.js';
import { scattered } from './seeded.js';

interface Job {
  readonly n: number;
}

const jobs = topic<Job>('jobs');
const results = topic<Job>('results');
const MESSAGES = 300;
const KEYS = 12;
const MAX_DELIVERIES = 4;
const redelivery = { maxDeliveries: MAX_DELIVERIES, backoff: exponentialBackoff({ minMs: 200, maxMs: seconds(20) }) };

const FAULTS: FaultOptions = {
  drop: { probability: 0.02, silentMs: [100, seconds(30)] },
  delay: { probability: 0.05, ms: [1, seconds(5)] },
  duplicate: { probability: 0.05, afterMs: [0, seconds(60)] },
  disconnect: 0.02,
  failPublish: 0.1,
  slowAcknowledge: { probability: 0.05, ms: [1, seconds(45)] },
};

export type FaultShape = HandlerOptions & { readonly type: SubscriptionType };
export const FAULT_SHAPES: readonly FaultShape[] = [
  { type: 'shared' },
  { type: 'shared', retryTopic: true, maxHeld: 5 },
  { type: 'key-shared' },
  { type: 'key-shared', ordering: 'key' },
  { type: 'exclusive' },
  { type: 'exclusive', ordering: 'key', concurrency: 8 },
  { type: 'failover' },
  { type: 'failover', ordering: 'key', concurrency: 8 },
];

export interface FaultResult {
  readonly counts: Readonly<Record<FaultName, number>>;
  /** What did not hold, a sentence each. */
  readonly violations: readonly string[];
}

export async function runFaultProgram(seed: number, options: FaultShape): Promise<FaultResult> {
  const random = scattered(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const handle = (delivery: Delivery<Job>): Promise<Outcome> => book.handle(delivery);
  const shared = { name: 'worker', source: jobs, subscription: 'work', redelivery, ...options } as const;
  const takesMany = options.ordering === undefined && random() < 0.3;
  const worker = takesMany
    ? defineHandler({
        ...shared,
        batch: { maxMessages: 5, maxWaitMs: 50 },
        handle: (deliveries: readonly Delivery<Job>[]) => Promise.all(deliveries.map(handle)),
      })
    : defineHandler({ ...shared, handle });
  const partitions = pick<Readonly<Record<string, number>>>([{}, { jobs: 3 }]);
  const kit: TestRuntime = await testRuntime({ handlers: [worker], partitions });
  // Some handlers outlive the connection that their message came over.
  const longestMs = pick([400, seconds(40)]);
  const book = new Book({ random, kit, longestMs, ordered: options.ordering === 'key' });
  const faults = kit.broker.inject({ ...FAULTS, seed });
  if (options.type !== 'exclusive') await anotherProcess(kit, worker);
  for (let n = 0; n < MESSAGES; n++) {
    await kit.publish(jobs, { n }, { key: `k${n % KEYS}` });
    if (n % 10 === 9) await kit.advanceBy(200);
  }
  await kit.advanceBy(minutes(10));
  faults.end();
  await kit.advanceBy(hours(2));
  const violations = [...book.violations, ...lost(kit), ...leftOver(kit)];
  await kit.close();
  return { counts: faults.counts, violations };
}

interface BookFacts {
  readonly random: () => number;
  readonly kit: TestRuntime;
  /** Of what a handler may wait for, milliseconds. */
  readonly longestMs: number;
  readonly ordered: boolean;
}

/** What the handlers of all processes did. */
class Book {
  readonly violations: string[] = [];
  readonly #done = new Set<number>();
  readonly #facts: BookFacts;

  constructor(facts: BookFacts) {
    this.#facts = facts;
  }

  async handle({ payload: { n }, attempt }: Delivery<Job>): Promise<Outcome> {
    const { random, ordered, longestMs } = this.#facts;
    if (ordered)
      for (let earlier = n % KEYS; earlier < n; earlier += KEYS)
        if (!this.#done.has(earlier)) this.violations.push(`${n} started before ${earlier} of its key was done`);
    const luck = random();
    if (random() < 0.5) await this.#wait(Math.floor(random() * longestMs));
    const fails = luck < 0.3;
    if (fails && luck >= 0.02 && attempt < MAX_DELIVERIES) return retry('not yet');
    this.#done.add(n);
    if (luck < 0.02) return poison('bad');
    return fails ? retry('never') : success(results.message({ n }));
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#facts.kit.clock.setTimer(ms, resolve));
  }
}

function anotherProcess(kit: TestRuntime, worker: ReturnType<typeof defineHandler>): Promise<Runtime> {
  return Runtime.start({
    transport: embedded({ broker: kit.broker }),
    handlers: [worker],
    logger: consoleLogger({ level: 'silent' }),
    random: () => 0.5,
  });
}

function lost(kit: TestRuntime): readonly string[] {
  const ended = [...kit.published(results), ...kit.deadLetters(jobs)].map(({ payload }) => (payload as Job).n);
  const known = new Set(ended);
  return Array.from({ length: MESSAGES }, (_, n) => n)
    .filter((n) => !known.has(n))
    .map((n) => `${n} was neither handled nor given up`);
}

function leftOver({ broker }: TestRuntime): readonly string[] {
  const letters = broker.topics().filter((name) => name.endsWith('-RETRY'));
  return ['jobs', ...letters].flatMap((name) => {
    const backlog = broker.stats(name).subscriptions.get('work')?.backlog ?? 0;
    return backlog === 0 ? [] : [`${backlog} messages are left on ${name}`];
  });
}
