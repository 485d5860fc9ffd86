// The handlers of a soak, one of each shape: single messages with every outcome, ordered keys, batches, follow-ups, and
// dead letters. Each tells the ledger how its jobs end.
import type { Delivery, HandlerDefinition, Outcome } from '../../../src/index.js';
import { defer, defineHandler, poison, retry, success, topic } from '../../../src/index.js';
import type { Job, JobLedger } from './job-ledger.js';

export const SINGLES = topic<Job>('soak-singles');
export const KEYED = topic<Job>('soak-keyed');
export const BATCHED = topic<Job>('soak-batched');
const RECEIPTS = topic<Job>('soak-receipts');
const LETTERS = topic<Job>('soak-letters');

const SUBSCRIPTION = 'soak';
const MAX_DELIVERIES = 3;
const WAIT_MS = 60;
/** So few that some of what waits is republished instead. */
const MAX_HELD = 10;

const COMMON = {
  subscription: SUBSCRIPTION,
  deadLetterTopic: LETTERS.name,
  redelivery: { maxDeliveries: MAX_DELIVERIES, backoff: (failures: number) => WAIT_MS * (failures + 1) },
};

/** Of every topic with its subscription; for the backlog. */
export const SUBSCRIBED: readonly (readonly [topic: string, subscription: string])[] = [
  ...[SINGLES, KEYED, BATCHED, RECEIPTS, LETTERS].map(({ name }) => [name, SUBSCRIPTION] as const),
];

/** @param seen gets each delivery, before it is handled */
export function soakHandlers(ledger: JobLedger, seen: (delivery: Delivery) => void): readonly HandlerDefinition[] {
  const handle = async (delivery: Delivery<Job>): Promise<Outcome> => {
    seen(delivery);
    const { takesMs } = delivery.payload;
    if (takesMs > 0) await new Promise((resolve) => setTimeout(resolve, takesMs));
    return outcomeOf(delivery, ledger);
  };
  const ended = (end: 'receipt' | 'letter') => (delivery: Delivery<Job>) => {
    seen(delivery);
    ledger.ends(delivery.payload, end);
    return success();
  };
  return [
    defineHandler({ ...COMMON, name: 'singles', source: SINGLES, retryTopic: true, maxHeld: MAX_HELD, handle }),
    defineHandler({
      ...COMMON,
      name: 'keyed',
      source: KEYED,
      type: 'key-shared',
      ordering: 'key',
      handle: (delivery) => {
        ledger.runs(delivery.payload);
        return handle(delivery);
      },
    }),
    defineHandler({
      ...COMMON,
      name: 'batched',
      source: BATCHED,
      batch: { maxMessages: 20, maxWaitMs: 10 },
      handle: (deliveries) => Promise.all(deliveries.map(async (delivery) => caught(() => handle(delivery)))),
    }),
    defineHandler({ name: 'receipts', source: RECEIPTS, subscription: SUBSCRIPTION, handle: ended('receipt') }),
    defineHandler({ name: 'letters', source: LETTERS, subscription: SUBSCRIPTION, handle: ended('letter') }),
  ];
}

function outcomeOf({ payload: job, attempt }: Delivery<Job>, ledger: JobLedger): Outcome {
  switch (job.kind) {
    case 'poisoned':
      return poison('it can never work');
    case 'thrown':
      throw new Error('it does not work');
    case 'flaky':
      if (attempt === 1) return retry(new Error('not yet'));
      break;
    case 'deferred':
      if (Date.now() < job.dueMs) return defer(new Date(job.dueMs), 'too early');
      break;
    case 'plain':
    case 'follow':
      break;
  }
  ledger.succeeded(job);
  ledger.ends(job, 'handled');
  return job.kind === 'follow' ? success(RECEIPTS.message(job)) : success();
}

/** In a batch, what one delivery throws must not be the outcome of the others. */
async function caught(handle: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await handle();
  } catch (error) {
    return retry(error instanceof Error ? error : String(error));
  }
}
