// One run of `wire-cuts`: a publisher and a subscription over a proxy that cuts their connections at given bytes.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { toError } from '../../src/core/errors.js';
import { WireClient } from '../../src/wire.js';
import type { WirePublisher } from '../../src/wire.js';
import { CountingConsumer } from '../support/counting-consumer.js';
import type { FaultyProxy } from '../support/real-pulsar/faulty-proxy.js';
import type { SharedPulsar } from '../support/real-pulsar/shared-pulsar.js';
import { cutViolations, shareOf } from './wire-cuts-checks.js';
import type { Published, TopicFigures } from './wire-cuts-checks.js';
import { cutPlan } from './wire-cuts-plan.js';
import type { CutPlan } from './wire-cuts-plan.js';

const SUBSCRIPTION = 's';
/** How long the broker's figures may be behind. */
const FIGURES_LIMIT_MS = 10_000;
const LOOK_AGAIN_MS = 50;

/** Where runs happen: namespaces of their own, so that one call removes all that they leave. */
export class CutsPlace {
  readonly pulsar: SharedPulsar;
  readonly proxy: FaultyProxy;
  /** Of all runs here. */
  readonly totals = { messages: 0, cuts: 0 };
  readonly #namespaces = { plain: newNamespace('plain'), deduplicating: newNamespace('deduplicating') };

  private constructor(pulsar: SharedPulsar, proxy: FaultyProxy) {
    this.pulsar = pulsar;
    this.proxy = proxy;
  }

  static async prepare(pulsar: SharedPulsar, proxy: FaultyProxy): Promise<CutsPlace> {
    const place = new CutsPlace(pulsar, proxy);
    const { plain, deduplicating } = place.#namespaces;
    await pulsar.admin.createNamespace(plain);
    await pulsar.admin.createNamespace(deduplicating);
    await pulsar.admin.call('POST', `/namespaces/${deduplicating}/deduplication`, true);
    return place;
  }

  newTopic({ deduplicates }: CutPlan): string {
    const { plain, deduplicating } = this.#namespaces;
    return `persistent://${deduplicates ? deduplicating : plain}/${randomUUID()}`;
  }

  async remove(): Promise<void> {
    for (const namespace of Object.values(this.#namespaces)) await this.pulsar.admin.deleteNamespace(namespace);
  }
}

function newNamespace(name: string): string {
  return `pulsework-campaign/${name}-${randomUUID()}`;
}

/** Gives what did not hold. */
export async function runWireCuts(seed: number, place: CutsPlace): Promise<readonly string[]> {
  const plan = cutPlan(seed);
  const topic = place.newTopic(plan);
  if (plan.partitions > 0) await place.pulsar.admin.createPartitionedTopic(topic, plan.partitions);
  const run = new CutsRun(place, plan, topic);
  try {
    return await run.violations();
  } finally {
    await run.close();
  }
}

class CutsRun {
  readonly #place: CutsPlace;
  readonly #plan: CutPlan;
  readonly #topic: string;
  readonly #clients: readonly WireClient[];

  constructor(place: CutsPlace, plan: CutPlan, topic: string) {
    this.#place = place;
    this.#plan = plan;
    this.#topic = topic;
    const { serviceUrl } = place.proxy;
    const newClient = (): WireClient => new WireClient({ serviceUrl, reconnectMinMs: 5, reconnectMaxMs: 200 });
    this.#clients = plan.sharesConnection ? [newClient()] : [newClient(), newClient()];
  }

  async violations(): Promise<readonly string[]> {
    const { proxy } = this.#place;
    const [receiving] = this.#clients;
    const { type, prefetch, messages } = this.#plan;
    const options = { topics: [this.#topic], subscription: SUBSCRIPTION, type, prefetch };
    const consumer = new CountingConsumer(await receiving!.subscribe(options));
    const publisher = await this.#publisher();
    const before = proxy.acceptedConnections;

    const published = await this.#publishAll(publisher);
    await consumer.until(messages);
    const cuts = proxy.acceptedConnections - before;
    this.#place.totals.messages += messages;
    this.#place.totals.cuts += cuts;
    proxy.heal();
    await consumer.untilAcknowledged();
    const topics = await this.#figures();
    await consumer.close();
    return cutViolations(this.#plan, { published, arrivals: consumer.arrivals, topics, cuts });
  }

  async close(): Promise<void> {
    this.#place.proxy.heal();
    for (const client of this.#clients) await client.close();
  }

  async #publisher(): Promise<WirePublisher> {
    const { batchSize, type } = this.#plan;
    const batching = batchSize === 1 ? false : { maxMessages: batchSize, byKey: type === 'key-shared' };
    return this.#clients.at(-1)!.publisher(this.#topic, { batching });
  }

  async #publishAll(publisher: WirePublisher): Promise<readonly Published[]> {
    const { messages, payloadBytes, window, cuts } = this.#plan;
    const receipts: Promise<Published>[] = [];
    for (let number = 0; number < messages; number++) {
      for (const cut of cuts.filter(({ before }) => before === number)) this.#arm(cut);
      const text = `message ${number} `.padEnd(payloadBytes, 'x');
      const message = { payload: Buffer.from(text), key: `key ${number % 7}`, properties: {} };
      const receipt = publisher.publish(message, publisher.nextSequenceId()).catch(toError);
      receipts.push(receipt.then((each) => ({ text, receipt: each })));
      if (number % window === window - 1) await receipt;
    }
    return Promise.all(receipts);
  }

  #arm({ which, direction, bytes }: CutPlan['cuts'][number]): void {
    const { proxy } = this.#place;
    if (which === 'next') proxy.cutNext(direction, bytes);
    else proxy.cutAfter(direction, bytes);
  }

  /** Of each partition, once they are as they must be, or after the time that they may be behind. */
  async #figures(): Promise<readonly TopicFigures[]> {
    const { partitions } = this.#plan;
    const topics = Array.from({ length: Math.max(1, partitions) }, (_, index) =>
      partitions === 0 ? this.#topic : `${this.#topic}-partition-${index}`,
    );
    const giveUpAt = Date.now() + FIGURES_LIMIT_MS;
    for (;;) {
      const figures = await Promise.all(topics.map((topic) => this.#figuresOf(topic)));
      if (figures.every((each) => this.#isSettled(each)) || Date.now() > giveUpAt) return figures;
      await sleep(LOOK_AGAIN_MS);
    }
  }

  async #figuresOf(topic: string): Promise<TopicFigures> {
    const { subscriptions, publishers } = await this.#place.pulsar.admin.stats(topic);
    const subscription = subscriptions[SUBSCRIPTION];
    return {
      backlog: subscription?.msgBacklog,
      unacknowledged: subscription?.unackedMessages,
      permits: (subscription?.consumers ?? []).map(({ availablePermits }) => availablePermits),
      publishers: publishers.length,
    };
  }

  #isSettled({ backlog, unacknowledged, permits, publishers }: TopicFigures): boolean {
    const share = shareOf(this.#plan);
    const [only = 0] = permits;
    const oneEach = permits.length === 1 && publishers === 1;
    return backlog === 0 && unacknowledged === 0 && oneEach && only > share / 2 && only <= share;
  }
}
