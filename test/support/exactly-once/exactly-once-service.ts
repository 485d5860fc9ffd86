// The handler of a service that consumes, transforms and produces in transactions, to be killed in the middle of its work:
// of each job it makes a result and an entry in a journal, which are there once, or not at all.
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Delivery, HandlerDefinition, HandlerOptions, Outcome } from '../../../src/index.js';
import { defineHandler, fixedBackoff, retry, success, topic } from '../../../src/index.js';

export const WORKERS = 'workers';

const JOB = z.object({ n: z.number(), takesMs: z.number(), isFlaky: z.boolean() });
export type ExactlyOnceJob = z.infer<typeof JOB>;

/** What a process is told: all of it is JSON, because it is an argument. Topic names are full. */
export interface ExactlyOnceSettings {
  readonly serviceUrl: string;
  readonly jobs: string;
  readonly results: string;
  readonly journal: string;
  readonly options: Pick<HandlerOptions, 'type' | 'ordering' | 'concurrency'>;
  readonly timeoutMs: number;
}

export function exactlyOnceHandler({ jobs, ...settings }: ExactlyOnceSettings): HandlerDefinition {
  const results = topic(settings.results);
  const journal = topic(settings.journal);
  const met = new Set<number>();

  async function handle({ payload: { n, takesMs, isFlaky }, key }: Delivery<ExactlyOnceJob>): Promise<Outcome> {
    await sleep(takesMs);
    const isFirst = !met.has(n);
    met.add(n);
    if (isFlaky && isFirst) return retry('not yet');
    return success(results.message(n, { key }), journal.message(n, { key }));
  }

  return defineHandler({
    name: 'transform',
    source: topic(jobs, { payload: JOB }),
    subscription: WORKERS,
    publishes: [results, journal],
    transactional: { timeoutMs: settings.timeoutMs },
    redelivery: { maxDeliveries: 1_000, backoff: fixedBackoff(50) },
    ...settings.options,
    handle,
  });
}
