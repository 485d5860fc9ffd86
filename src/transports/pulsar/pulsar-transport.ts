// The Transport port over the official client, `pulsar-client`: what the runtime relies on, on top of an addon that ends
// the process over a wrong argument, loses acknowledgements and forgets what is not held.
import { OptionChecker } from '../../core/options.js';
import type { SubscriptionSpec } from '../../core/subscription-spec.js';
import { SUBSCRIPTION_FIELDS, checkSubscriptionFields } from '../../core/subscription-spec.js';
import { fullTopicName } from '../../core/topic-name.js';
import type { Capability, Publisher, PublisherRequest, Subscription, Transport } from '../../ports/transport.js';
import { NEGATIVE_ACK_DELAY_MS } from './negative-ack-queue.js';
import type { Official } from './official-connection.js';
import { OfficialConnection } from './official-connection.js';
import { alreadyClosed, closeQuietly, notSupported, resultOf, transportError } from './official-errors.js';
import { PulsarPublisher } from './pulsar-publisher.js';
import type { PulsarOptions, ResolvedPulsarOptions } from './pulsar-options.js';
import { resolvePulsarOptions } from './pulsar-options.js';
import { PulsarSubscription } from './pulsar-subscription.js';

/** No receipts of acknowledgements, no flow that can be paused; order is kept by running again in place only. */
const CAPABILITIES: ReadonlySet<Capability> = new Set<Capability>([
  'cumulative-ack',
  'redelivery-count',
  'delayed-delivery',
]);

/**
 * A transport on real Pulsar through the official client, an optional peer. Nothing is loaded or connected before it is
 * needed. @throws ConfigurationError.
 */
export function pulsar(options: PulsarOptions): PulsarTransport {
  return new PulsarTransport(resolvePulsarOptions(options));
}

export class PulsarTransport implements Transport {
  readonly name = 'pulsar';
  readonly capabilities = CAPABILITIES;
  readonly #options: ResolvedPulsarOptions;
  readonly #connection: OfficialConnection;
  readonly #open = new Set<{ close(): Promise<void> }>();
  #closing: Promise<void> | undefined;

  /** Use `pulsar(...)`. */
  constructor(options: ResolvedPulsarOptions) {
    this.#options = options;
    this.#connection = new OfficialConnection(options);
  }

  get maxMessageBytes(): number {
    return this.#options.maxMessageBytes;
  }

  /** @throws also PulseworkError PEER_NOT_INSTALLED, PEER_NOT_LOADABLE. */
  async subscribe(spec: SubscriptionSpec): Promise<Subscription> {
    checkSpec(spec);
    const topics = spec.topics.map((topic) => checkedTopic(topic));
    const official = await this.#connection.open();
    const checked = { ...spec, topics };
    return this.#keep(
      await PulsarSubscription.open(official, checked, this.#options, (closed) => void this.#open.delete(closed)),
    );
  }

  /** @throws also PulseworkError PEER_NOT_INSTALLED, PEER_NOT_LOADABLE. */
  async publisher(topic: string, { initialSubscription, producerName }: PublisherRequest = {}): Promise<Publisher> {
    const full = checkedTopic(topic);
    const check = new OptionChecker(`publisher of "${full}"`);
    checkName('initialSubscription', initialSubscription, check);
    checkName('producerName', producerName, check);
    check.throwIfAny();
    const official = await this.#connection.open();
    if (initialSubscription !== undefined) await createSubscription(official, full, initialSubscription);
    const forget = (closed: PulsarPublisher): void => void this.#open.delete(closed);
    return this.#keep(await PulsarPublisher.open(official, full, this.#options, { forget, producerName }));
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<void> {
    const closing = await Promise.allSettled([...this.#open].map((opened) => opened.close()));
    await this.#connection.close();
    for (const result of closing) if (result.status === 'rejected') throw result.reason as Error;
  }

  /** What was opened while the transport closed must not stay. */
  async #keep<T extends { close(): Promise<void> }>(opened: T): Promise<T> {
    this.#open.add(opened);
    if (this.#closing === undefined) return opened;
    await opened.close();
    throw alreadyClosed('the pulsar transport');
  }
}

function checkSpec(spec: { readonly [K in keyof SubscriptionSpec]: unknown }): void {
  const check = new OptionChecker('subscribe');
  if (check.object('spec', spec)) {
    check.unknownOptions(spec, SUBSCRIPTION_FIELDS);
    if (spec.pattern !== undefined) check.problem('"pattern" is not for the official client: name the topics');
    checkSubscriptionFields(spec, check);
    checkName('subscription', spec.subscription, check);
    checkName('consumerName', spec.consumerName, check);
  }
  check.throwIfAny();
}

/** The addon reads texts up to the first NUL. */
function checkName(name: string, value: unknown, check: OptionChecker): void {
  check.nonEmptyString(name, value);
  if (typeof value === 'string' && value.includes('\0')) check.problem(`${JSON.stringify(name)} must not have a NUL`);
}

function checkedTopic(topic: string): string {
  const full = fullTopicName(topic);
  if (full.includes('\0')) throw notSupported(`topic name ${JSON.stringify(full)} must not have a NUL`);
  return full;
}

/** The client's producers cannot name one, so a consumer opens and closes. One that is busy is there already. */
async function createSubscription({ client }: Official, topic: string, subscription: string): Promise<void> {
  const subject = `creating subscription "${subscription}" on "${topic}"`;
  try {
    const consumer = await client.subscribe({
      topic,
      subscription,
      subscriptionType: 'Shared',
      subscriptionInitialPosition: 'Earliest',
      receiverQueueSize: 1,
      nAckRedeliverTimeoutMs: NEGATIVE_ACK_DELAY_MS,
      ackTimeoutMs: 0,
      batchIndexAckEnabled: true,
    });
    await closeQuietly(consumer.close(), subject);
  } catch (error) {
    if (resultOf(error) !== 'ConsumerBusy') throw transportError(subject, error);
  }
}
