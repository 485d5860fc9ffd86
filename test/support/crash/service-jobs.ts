// The handler of a service that dies on a real broker, and the jobs it gets: one kind for each way a message can end. It
// tells of each run and of each job that is done before the runtime hears of it.
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Delivery, HandlerDefinition, HandlerOptions, Outcome } from '../../../src/index.js';
import {
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
  skip,
  success,
  topic,
} from '../../../src/index.js';
import type { DeadLetterCause } from '../../../src/index.js';

export const WORKERS = 'workers';

const JOB = z.object({
  id: z.string(),
  kind: z.string(),
  /** How long its runs take, so that some of them are under way whenever the process dies. */
  takesMs: z.number(),
});
export type Job = z.infer<typeof JOB>;

/** What a service is told: all of it is JSON, because it is an argument of a process. */
export interface ServiceSettings {
  readonly serviceUrl: string;
  /** Full names. */
  readonly jobs: string;
  readonly results: string;
  readonly options: Pick<
    HandlerOptions,
    'type' | 'retryTopic' | 'maxHeld' | 'concurrency' | 'ordering' | 'ackTimeoutMs' | 'prefetch'
  >;
  readonly maxDeliveries: number;
  readonly isIdempotent: boolean;
  /** Of a FileAttemptStore. @default without one */
  readonly attempts?: string | undefined;
}

const WAIT_MS = 250;

interface Asked {
  /** Whether this process meets the job for the first time. */
  readonly first: boolean;
  readonly attempt: number;
  readonly follow: (n: number) => ReturnType<ReturnType<typeof topic>['message']>;
}

/** What becomes of a job of each kind. */
const ENDINGS: Readonly<Record<string, (asked: Asked) => Outcome>> = {
  plain: () => success(),
  skipped: () => skip('not for us'),
  follow: ({ follow }) => success(follow(0), follow(1)),
  flaky: ({ attempt }) => (attempt === 1 ? retry('not yet') : success()),
  late: ({ attempt }) => (attempt === 1 ? retryAfter(2 * WAIT_MS) : success()),
  deferred: ({ first }) => (first ? defer(WAIT_MS) : success()),
  outage: ({ first }) => (first ? dependencyDown('bank', { retryAfterMs: 50 }) : success()),
  throwing: ({ attempt, follow }) => {
    if (attempt === 1) throw new Error('broken');
    return success(follow(0));
  },
  hopeless: () => retry('never works'),
  poisoned: () => poison('bad'),
  exits: () => process.exit(13),
  exhausts: () => exhaustMemory(),
};
/** Kinds that end by themselves; `wrong` does not match the schema. `exits` and `exhausts` kill the process. */
export const ENDING_KINDS = [
  ...['plain', 'skipped', 'follow', 'flaky', 'late', 'deferred', 'outage', 'throwing'],
  ...['hopeless', 'poisoned', 'wrong'],
] as const;

/** Why a job of the kind is a dead letter in the end; undefined where it must not be one. */
export function causeOf(kind: string): DeadLetterCause | undefined {
  return CAUSES[kind];
}

const CAUSES: Readonly<Record<string, DeadLetterCause | undefined>> = {
  hopeless: 'redeliveries-exhausted',
  poisoned: 'poison',
  wrong: 'undecodable',
  exits: 'process-died',
  exhausts: 'process-died',
};

/** How many follow-ups a job of the kind has. */
export function followsOf(kind: string): number {
  return kind === 'follow' ? 2 : kind === 'throwing' ? 1 : 0;
}

/** @param tell must have left the process when it returns. */
export function serviceHandler(settings: ServiceSettings, tell: (line: string) => void): HandlerDefinition {
  const results = topic(settings.results);
  const met = new Set<string>();

  async function handle({ payload: { id, kind, takesMs }, attempt }: Delivery<Job>): Promise<Outcome> {
    tell(`run ${id} ${attempt}`);
    const first = !met.has(id);
    met.add(id);
    if (takesMs > 0) await sleep(takesMs);
    let outcome: Outcome | undefined;
    try {
      outcome = ENDINGS[kind]!({ first, attempt, follow: (n) => results.message({ of: id, n }) });
      return outcome;
    } finally {
      tell(`${outcome?.kind === 'success' || outcome?.kind === 'skip' ? 'done' : 'failed'} ${id}`);
    }
  }

  return defineHandler({
    name: 'worker',
    source: topic(settings.jobs, { payload: JOB }),
    subscription: WORKERS,
    redelivery: { maxDeliveries: settings.maxDeliveries, backoff: fixedBackoff(WAIT_MS) },
    ...settings.options,
    ...(settings.isIdempotent ? { idempotent: guard() } : {}),
    handle,
  });
}

/** Its outcomes die with the process: what is left to show is that it loses nothing. */
function guard(): HandlerOptions['idempotent'] {
  const store = memoryIdempotencyStore();
  return idempotent<Job>({ key: ({ payload }) => payload.id, store, ttlMs: minutes(60) });
}

/** Until the heap is full, which ends the process. */
function exhaustMemory(): never {
  const hoard: unknown[] = [];
  for (;;) hoard.push(Array.from({ length: 10_000 }, (_, index) => ({ index })));
}
