// How exactly failed deliveries come again from a real broker: for each one when it was due, when the request for it left the
// port, and when it arrived. All by one clock, the one that the runtime counts by.
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Runtime,
  defineHandler,
  fullTopicName,
  retry,
  steppedBackoff,
  success,
  systemClock,
  topic,
} from '../../src/index.js';
import type { Delivery, Subscription, Transport } from '../../src/index.js';
import type { MessageId } from '../../src/core/message-id.js';
import { formatMessageId } from '../../src/core/message-id.js';
import { WireClient, WireTransport } from '../../src/wire.js';

/** The schedule that the handler's policy is known by. */
export const DELAYS_MS: readonly number[] = [100, 200, 400, 800];
const SUBSCRIPTION = 's';

/** Of all redeliveries, milliseconds after they were due. */
export interface RedeliveryDelays {
  /** How many there were. Each has a request and an arrival. */
  readonly expected: number;
  readonly requestedMs: readonly number[];
  readonly arrivedMs: readonly number[];
}

export interface Load {
  /** Messages, each of which fails once for each step of the schedule. */
  readonly jobs: number;
  /** Between publishing two. */
  readonly gapMs: number;
}

export async function redeliveryDelays(
  serviceUrl: string,
  name: string,
  { jobs, gapMs }: Load,
): Promise<RedeliveryDelays> {
  const measured = new Measured(jobs);
  const transport = new WireTransport(new WireClient({ serviceUrl }));
  const runtime = await Runtime.start({
    transport: requestsSeen(transport, (ids) => measured.requested(ids)),
    handlers: [
      defineHandler({
        name: 'always-fails',
        source: topic(name),
        subscription: SUBSCRIPTION,
        redelivery: { maxDeliveries: DELAYS_MS.length + 1, backoff: steppedBackoff(DELAYS_MS) },
        handle: (delivery) => measured.handle(delivery),
      }),
    ],
    logger: SILENT,
  });
  try {
    await publishAll(transport.client, name, { jobs, gapMs });
    await measured.done;
    return measured.delays;
  } finally {
    await runtime.drain({ deadlineMs: 1_000 });
  }
}

/** Each by itself: an entry of several would come again as a whole. */
async function publishAll(client: WireClient, name: string, { jobs, gapMs }: Load): Promise<void> {
  const publisher = await client.publisher(fullTopicName(name, 'public/default'), { batching: false });
  for (let job = 0; job < jobs; job++) {
    await publisher.publish({ payload: Buffer.from(String(job)), properties: {} }, publisher.nextSequenceId());
    await sleep(gapMs);
  }
  await publisher.close();
}

class Measured {
  readonly done: Promise<void>;
  readonly #jobs: number;
  readonly #dueMs = new Map<string, number>();
  readonly #requestedMs: number[] = [];
  readonly #arrivedMs: number[] = [];
  #over = 0;
  #end: () => void = () => undefined;

  constructor(jobs: number) {
    this.#jobs = jobs;
    this.done = new Promise((end) => (this.#end = end));
  }

  get delays(): RedeliveryDelays {
    const expected = this.#jobs * DELAYS_MS.length;
    return { expected, requestedMs: this.#requestedMs, arrivedMs: this.#arrivedMs };
  }

  requested(ids: readonly MessageId[]): void {
    const now = systemClock.now();
    for (const id of ids) this.#requestedMs.push(now - (this.#dueMs.get(nameOf(id)) ?? Infinity));
  }

  handle({ id, attempt }: Delivery): ReturnType<typeof retry> | ReturnType<typeof success> {
    const now = systemClock.now();
    const name = nameOf(id);
    const dueMs = this.#dueMs.get(name);
    if (dueMs !== undefined) this.#arrivedMs.push(now - dueMs);
    const delayMs = DELAYS_MS[attempt - 1];
    if (delayMs !== undefined) {
      this.#dueMs.set(name, now + delayMs);
      return retry('as planned');
    }
    this.#over += 1;
    if (this.#over === this.#jobs) this.#end();
    return success();
  }
}

/** Its entry: that is what is asked for, see NegativeAckTracker. */
function nameOf(id: MessageId): string {
  return formatMessageId({ ...id, batchIndex: -1 });
}

/** The same transport; `seen` is told of each request for redelivery in the moment in which it is made. */
function requestsSeen(transport: WireTransport, seen: (ids: readonly MessageId[]) => void): Transport {
  const { name, capabilities } = transport;
  return {
    ...{ name, capabilities },
    get maxMessageBytes() {
      return transport.maxMessageBytes;
    },
    publisher: (topicName, request) => transport.publisher(topicName, request),
    close: () => transport.close(),
    subscribe: async (spec) => {
      const subscription = await transport.subscribe(spec);
      const redeliver: Subscription['redeliver'] = (ids) => {
        seen(ids);
        return subscription.redeliver(ids);
      };
      return new Proxy(subscription, {
        get: (target, property) => {
          if (property === 'redeliver') return redeliver;
          const value: unknown = Reflect.get(target, property, target);
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        },
      });
    },
  };
}

/** What is not as it must be whatever the machine does: some came early, or not at all. */
export function earlyOrMissing({ expected, requestedMs, arrivedMs }: RedeliveryDelays): readonly string[] {
  const early = requestedMs.filter((ms) => ms < 0);
  return [
    ...(early.length === 0 ? [] : [`${early.length} requests left early, by up to ${-Math.min(...early)} ms`]),
    ...(requestedMs.length === expected ? [] : [`${requestedMs.length} requests, not ${expected}`]),
    ...(arrivedMs.length === expected ? [] : [`${arrivedMs.length} arrivals, not ${expected}`]),
  ];
}

/** @param share 0.95 for the 95th percentile. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? NaN;
}

const nothing = (): void => undefined;
const SILENT = { isEnabled: () => false, debug: nothing, info: nothing, warn: nothing, error: nothing };
