// Random programs for crash injection: messages of every kind of ending go to one handler, one call of the service goes
// wrong, and afterwards every message is counted.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Delivery, HandlerOptions, Outcome, Runtime } from '../../../src/index.js';
import {
  Runtime as PulseworkRuntime,
  defer,
  defineHandler,
  dependencyDown,
  fixedBackoff,
  idempotent,
  memoryIdempotencyStore,
  minutes,
  poison,
  retry,
  retryAfter,
  seconds,
  skip,
  success,
  topic,
} from '../../../src/index.js';
import type { Cut } from '../../../src/testing.js';
import { AttemptMemory, CrashWorld, FAULTS, memoryAttemptStore } from '../../../src/testing.js';

export const JOBS = 'jobs';
export const WORKERS = 'workers';
const results = topic('results');
const MAX_DELIVERIES = 3;

/** What the handler says to a message of each kind, by how often it was asked (1 for the first). */
export const KINDS: Readonly<Record<string, (run: number, delivery: Delivery<Job>) => Outcome>> = {
  plain: () => success(),
  skipped: () => skip('not for us'),
  follow: (_, { payload }) =>
    success(results.message({ of: payload.id, n: 0 }), results.message({ of: payload.id, n: 1 })),
  flaky: (run) => (run === 1 ? retry('not yet') : success()),
  late: (run) => (run === 1 ? retryAfter(seconds(5)) : success()),
  // Longer than what is held: published again where there is a retry letter topic.
  later: (run) => (run === 1 ? retryAfter(minutes(11)) : success()),
  deferred: (run) => (run === 1 ? defer(seconds(7)) : success()),
  longDeferred: (run) => (run === 1 ? defer(minutes(12)) : success()),
  outage: (run) => (run <= 2 ? dependencyDown('bank', { retryAfterMs: 500 }) : success()),
  throwing: (run) => {
    if (run === 1) throw new Error('broken');
    return success(results.message({ of: 'throwing', n: 0 }));
  },
  hopeless: () => retry('never works'),
  poisoned: () => poison('bad'),
};
/** Those that end as dead letters; `wrong` does not match the schema. */
const DEAD: readonly string[] = ['hopeless', 'poisoned', 'wrong'];

export interface Job {
  readonly id: string;
  readonly kind: string;
}

export interface CrashProgram {
  readonly seed: number;
  readonly jobs: readonly Job[];
  /** The messages come as one producer batch. */
  readonly batched: boolean;
  /** The handler takes several at a time. */
  readonly takesMany: boolean;
  readonly options: HandlerOptions;
  readonly recordsAttempts: boolean;
  readonly isIdempotent: boolean;
  /** Drain and start again after so many milliseconds; undefined for never. */
  readonly drainAfterMs: number | undefined;
}

const SHAPES: readonly HandlerOptions[] = [
  { type: 'shared' },
  { type: 'shared', retryTopic: true },
  { type: 'shared', retryTopic: true, maxHeld: 2 },
  { type: 'shared', ackTimeoutMs: 1_000 },
  { type: 'key-shared' },
  { type: 'key-shared', retryTopic: true },
  { type: 'key-shared', ordering: 'key' },
  { type: 'exclusive' },
  { type: 'failover', ordering: 'partition' },
];

/** The program of a seed. */
export function crashProgram(seed: number): CrashProgram {
  const random = seeded(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const kinds = [...Object.keys(KINDS), 'wrong'];
  const jobs = Array.from({ length: 1 + Math.floor(random() * 6) }, (_, i) => {
    const kind = pick(kinds);
    return { id: `${kind}-${i}`, kind };
  });
  return {
    seed,
    jobs,
    batched: random() < 0.3,
    options: { ...pick(SHAPES), concurrency: pick([1, 2, 16]) },
    recordsAttempts: random() < 0.3,
    isIdempotent: random() < 0.2,
    drainAfterMs: random() < 0.25 ? Math.floor(random() * 20_000) : undefined,
    takesMany: random() < 0.25,
  };
}

/** A cut of the program: any of its calls, any way of going wrong. @param calls those of the program without a cut. */
export function randomCut(seed: number, calls: number): Cut {
  const random = seeded(seed ^ 0x5bd1e995);
  const fault = FAULTS[Math.floor(random() * FAULTS.length)] ?? 'throws';
  return { at: 1 + Math.floor(random() * calls), fault };
}

export interface CrashResult {
  readonly calls: number;
  /** What did not hold, a sentence each. */
  readonly violations: readonly string[];
}

/** Long enough for six waits of 12 minutes one after the other, every repeated call and the backoffs between them. */
const AFTERWARDS_MS = minutes(120);

export async function runCrashProgram(program: CrashProgram, cut: Cut): Promise<CrashResult> {
  const runs = new Map<string, number>();
  const handled = new Map<string, number>();
  const memory = new AttemptMemory();
  const idempotency = memoryIdempotencyStore();
  const world: CrashWorld = new CrashWorld(cut, start, () => memory.processDied());

  function handle(delivery: Delivery<Job>): Outcome {
    const { id, kind } = delivery.payload;
    const run = (runs.get(id) ?? 0) + 1;
    runs.set(id, run);
    const outcome = (KINDS[kind] ?? KINDS['plain']!)(run, delivery);
    if (outcome.kind === 'success' || outcome.kind === 'skip') handled.set(id, (handled.get(id) ?? 0) + 1);
    return outcome;
  }

  /** Each by its own outcome; what one throws is its own too. */
  function handleMany(deliveries: readonly Delivery<Job>[]): Outcome[] {
    return deliveries.map((delivery) => {
      try {
        return handle(delivery);
      } catch (error) {
        return retry(error as Error);
      }
    });
  }

  function start(...[transport, store]: Parameters<ConstructorParameters<typeof CrashWorld>[1]>): Promise<Runtime> {
    const attempts = memoryAttemptStore({ memory });
    const claims = store(idempotency, ['claim', 'renew', 'record', 'release']);
    const guard = idempotent<Job>({
      key: ({ payload }) => payload.id,
      store: claims,
      ttlMs: minutes(60),
      leaseMs: seconds(3),
    });
    const shared = {
      name: 'worker',
      source: topic(JOBS, { payload: JOB }),
      subscription: WORKERS,
      redelivery: { maxDeliveries: MAX_DELIVERIES, backoff: fixedBackoff(seconds(1)) },
      ...program.options,
      ...(program.isIdempotent ? { idempotent: guard } : {}),
    } as const;
    const handler = program.takesMany
      ? defineHandler({ ...shared, batch: { maxMessages: 3, maxWaitMs: 50 }, handle: handleMany })
      : defineHandler({ ...shared, handle });
    return PulseworkRuntime.start({
      transport,
      handlers: [handler],
      random: () => 0.5,
      logger: SILENT,
      callTimeoutMs: seconds(10),
      ...(program.recordsAttempts ? { attemptStore: store(attempts, ['begin', 'end', 'delete']) } : {}),
    });
  }

  await world.start();
  await publish(world, program);
  if (program.drainAfterMs !== undefined) {
    await world.pass(program.drainAfterMs);
    await world.drain();
    await world.restart();
  }
  await world.pass(AFTERWARDS_MS);
  const violations = await checked(world, program, cut, { runs, handled });
  const { calls } = world;
  await world.drain(0);
  return { calls, violations };
}

async function publish({ broker }: CrashWorld, { jobs, batched }: CrashProgram): Promise<void> {
  const messages = jobs.map(({ id, kind }, i) => ({
    payload: Buffer.from(JSON.stringify(kind === 'wrong' ? { wrong: id } : { id, kind })),
    key: `key-${i % 2}`,
    properties: { id },
  }));
  if (batched) await broker.publishBatch(JOBS, messages);
  else for (const message of messages) await broker.publish(JOBS, message);
}

interface Counts {
  readonly runs: ReadonlyMap<string, number>;
  readonly handled: ReadonlyMap<string, number>;
}

async function checked(
  world: CrashWorld,
  program: CrashProgram,
  { fault }: Cut,
  { runs, handled }: Counts,
): Promise<readonly string[]> {
  const letters = countsOf(await world.read(`${JOBS}-${WORKERS}-DLQ`), ({ properties }) => properties['id'] ?? '?');
  const follows = countsOf(await world.read('results'), ({ properties }) => properties['pulsework-message-id'] ?? '?');
  // What failed at once, with nothing done, must leave no trace; what is unknown or died may repeat (guarantees.md).
  const clean =
    (fault === 'throws' || fault === 'rejects-late') && program.drainAfterMs === undefined && !program.isIdempotent;
  return [
    ...[JOBS, `${JOBS}-${WORKERS}-RETRY`].flatMap((name) => leftOn(world, name)),
    ...program.jobs.flatMap(({ id, kind }) => {
      const counts = { runs: runs.get(id) ?? 0, handled: handled.get(id) ?? 0, dead: letters.get(id) ?? 0 };
      const wrong = DEAD.includes(kind) ? wrongWithDead(kind, counts, clean) : wrongWithGood(counts, clean);
      return wrong.map((what) => `${id} ${what}`);
    }),
    ...wrongWithFollowUps(program, follows, clean),
  ];
}

interface JobCounts {
  readonly runs: number;
  readonly handled: number;
  readonly dead: number;
}

function leftOn(world: CrashWorld, topicName: string): readonly string[] {
  const left = world.backlog(topicName, WORKERS);
  return left > 0 ? [`${left} messages are left on ${topicName}`] : [];
}

function wrongWithDead(kind: string, { runs, handled, dead }: JobCounts, clean: boolean): readonly string[] {
  const wrong: string[] = [];
  if (dead === 0) wrong.push('has no dead letter');
  if (handled > 0) wrong.push('was handled');
  if (clean && dead > 1) wrong.push(`has ${dead} dead letters`);
  if (clean && kind === 'hopeless' && runs !== MAX_DELIVERIES) wrong.push(`ran ${runs} times, not ${MAX_DELIVERIES}`);
  return wrong;
}

function wrongWithGood({ handled, dead }: JobCounts, clean: boolean): readonly string[] {
  const wrong: string[] = [];
  if (handled === 0) wrong.push('is gone and was never handled');
  if (dead > 0) wrong.push(`has ${dead} dead letters`);
  if (clean && handled > 1) wrong.push(`was handled ${handled} times`);
  return wrong;
}

/** How many messages follow from one of each kind. */
const FOLLOW_UPS: Readonly<Record<string, number>> = { follow: 2, throwing: 1 };

function wrongWithFollowUps(
  { jobs }: CrashProgram,
  published: ReadonlyMap<string, number>,
  clean: boolean,
): readonly string[] {
  const wrong: string[] = [];
  const expected = jobs.reduce((sum, { kind }) => sum + (FOLLOW_UPS[kind] ?? 0), 0);
  if (published.size !== expected) wrong.push(`${published.size} different follow-ups, not ${expected}`);
  if (clean && [...published.values()].some((times) => times > 1)) wrong.push('a follow-up was published twice');
  return wrong;
}

function countsOf<T>(list: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const item of list) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return counts;
}

/** A schema by hand: a hundred thousand programs should not measure a validator. */
const JOB: StandardSchemaV1<unknown, Job> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value: unknown) =>
      typeof (value as Partial<Job>).id === 'string' ? { value: value as Job } : { issues: [{ message: 'has no id' }] },
  },
};

const nothing = (): void => undefined;
const SILENT = { isEnabled: () => false, debug: nothing, info: nothing, warn: nothing, error: nothing };

/** Mulberry32: small, and the same everywhere. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
