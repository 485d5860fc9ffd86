// The handler of a service that keeps order per key and dies on a real broker, and the jobs it gets. It tells of each run,
// of its end before the runtime hears of it, and of each settlement before the runtime goes on with the key.
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Delivery, HandlerDefinition, Outcome, Plugin } from '../../../src/index.js';
import { defer, defineHandler, fixedBackoff, poison, retry, retryAfter, success, topic } from '../../../src/index.js';

export const LEDGER = 'ledger';
export const MAX_DELIVERIES = 3;
const WAIT_MS = 150;

/** `hopeless` and `poisoned` become dead letters; the others are done in the end. */
export const JOB_KINDS = ['plain', 'flaky', 'late', 'deferred', 'hopeless', 'poisoned'] as const;
export type JobKind = (typeof JOB_KINDS)[number];

const JOB = z.object({
  /** Rises in the order of publishing. */
  n: z.number(),
  key: z.string(),
  kind: z.enum(JOB_KINDS),
  takesMs: z.number(),
});
export type OrderedJob = z.infer<typeof JOB>;

/** What a process is told: all of it is JSON, because it is an argument. */
export interface OrderedSettings {
  readonly serviceUrl: string;
  /** Full name. */
  readonly jobs: string;
  readonly concurrency: number;
}

export function becomesDeadLetter(kind: JobKind): boolean {
  return kind === 'hopeless' || kind === 'poisoned';
}

/** @param tell must have left the process when it returns. */
export function orderedHandler(settings: OrderedSettings, tell: (line: string) => void): HandlerDefinition {
  const met = new Set<number>();

  async function handle({ payload, attempt, position }: Delivery<OrderedJob>): Promise<Outcome> {
    const { n, takesMs } = payload;
    tell(`run ${n} ${position}`);
    const first = !met.has(n);
    met.add(n);
    await sleep(takesMs);
    const outcome = outcomeOf(payload, attempt, first);
    const isLast = outcome.kind === 'retry' && attempt >= MAX_DELIVERIES;
    tell(`end ${n} ${outcome.kind === 'success' || outcome.kind === 'poison' || isLast ? 'final' : 'open'}`);
    return outcome;
  }

  return defineHandler({
    name: 'ledger',
    source: topic(settings.jobs, { payload: JOB }),
    subscription: LEDGER,
    ...{ type: 'key-shared', ordering: 'key', concurrency: settings.concurrency },
    redelivery: { maxDeliveries: MAX_DELIVERIES, backoff: fixedBackoff(WAIT_MS) },
    handle,
  });
}

function outcomeOf({ kind }: OrderedJob, attempt: number, first: boolean): Outcome {
  switch (kind) {
    case 'plain':
      return success();
    case 'flaky':
      return attempt === 1 ? retry('not yet') : success();
    case 'late':
      return attempt === 1 ? retryAfter(2 * WAIT_MS) : success();
    case 'deferred':
      return first ? defer(WAIT_MS) : success();
    case 'hopeless':
      return retry('never works');
    case 'poisoned':
      return poison('bad');
  }
}

/** Tells of settlements. A plugin hears of one when it is made, and before the next message of the key may run. */
export function settlementTeller(tell: (line: string) => void): Plugin {
  return {
    name: 'settlement-teller',
    onSettled: ({ properties, settlement }) => {
      const isFinal = settlement === 'acknowledge' || settlement === 'dead-letter';
      tell(`settled ${properties['n'] ?? '?'} ${isFinal ? 'final' : 'open'}`);
    },
  };
}
