// The in-process transport: the Transport port on an embedded broker. Several transports may share one broker, as
// several processes share a Pulsar.
import { ConfigurationError, TransportError, describeValue } from '../../core/errors.js';
import { OptionChecker } from '../../core/options.js';
import type { SubscriptionSpec } from '../../core/subscription-spec.js';
import { checkSubscriptionFields } from '../../core/subscription-spec.js';
import type { Clock } from '../../ports/clock.js';
import type { Capability, Publisher, PublisherRequest, Subscription, Transport } from '../../ports/transport.js';
import { keepAlive } from '../../system/keep-alive.js';
import { systemClock } from '../../system/system-clock.js';
import { EmbeddedBroker } from '../../broker/embedded-broker.js';
import { EmbeddedPublisher } from './embedded-publisher.js';
import { EmbeddedSubscription } from './embedded-subscription.js';

export interface EmbeddedOptions {
  /** Shared with other transports. @default a broker of its own */
  readonly broker?: EmbeddedBroker | undefined;
  /** Of the broker that is made here; with `broker`, it must be that broker's. @default systemClock */
  readonly clock?: Clock | undefined;
}

const CAPABILITIES: ReadonlySet<Capability> = new Set<Capability>([
  'ack-receipts',
  'cumulative-ack',
  'redelivery-count',
  'delayed-delivery',
  'flow-pause',
]);

/** A transport on an embedded broker in this process. @throws ConfigurationError. */
export function embedded(options: EmbeddedOptions = {}): EmbeddedTransport {
  const check = new OptionChecker('embedded');
  if (check.object('options', options)) check.unknownOptions(options, ['broker', 'clock']);
  check.throwIfAny();
  const { broker, clock } = options;
  if (broker === undefined) return new EmbeddedTransport(new EmbeddedBroker({ clock: clock ?? systemClock }));
  if (!((broker as unknown) instanceof EmbeddedBroker)) {
    throw new ConfigurationError([`embedded: "broker" must be an EmbeddedBroker, got ${describeValue(broker)}`]);
  }
  if (clock !== undefined && clock !== broker.clock) {
    throw new ConfigurationError(['embedded: "clock" must be the clock of "broker"; leave it out']);
  }
  return new EmbeddedTransport(broker);
}

export class EmbeddedTransport implements Transport {
  readonly name = 'embedded';
  readonly capabilities = CAPABILITIES;
  readonly broker: EmbeddedBroker;
  readonly #open = new Set<{ close(): Promise<void> }>();
  #closed = false;
  /** Subscriptions have no socket here: without this a process that only waits for messages would end. */
  #letProcessEnd: (() => void) | undefined;

  constructor(broker: EmbeddedBroker) {
    this.broker = broker;
  }

  get clock(): Clock {
    return this.broker.clock;
  }

  get maxMessageBytes(): number {
    return this.broker.options.maxMessageBytes;
  }

  async subscribe(spec: SubscriptionSpec): Promise<Subscription> {
    this.#checkOpen('subscribe');
    checkSpec(spec);
    const subscription = new EmbeddedSubscription(this.broker, { ...spec, topics: [...spec.topics] }, () =>
      this.#open.delete(subscription),
    );
    this.#open.add(subscription);
    if (this.broker.clock === systemClock) this.#letProcessEnd ??= keepAlive();
    return subscription;
  }

  async publisher(topic: string, { initialSubscription }: PublisherRequest = {}): Promise<Publisher> {
    this.#checkOpen('publisher');
    const full = this.broker.fullName(topic);
    this.broker.partitionsOf(full);
    if (initialSubscription !== undefined) this.broker.createSubscription(full, initialSubscription);
    const publisher = new EmbeddedPublisher(this.broker, full, () => this.#open.delete(publisher));
    this.#open.add(publisher);
    return publisher;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#open].map((opened) => opened.close()));
    this.#letProcessEnd?.();
    this.#letProcessEnd = undefined;
  }

  #checkOpen(call: string): void {
    if (!this.#closed) return;
    throw new TransportError('ALREADY_CLOSED', `${call}: the embedded transport is closed`, { retriable: false });
  }
}

function checkSpec(spec: { readonly [K in keyof SubscriptionSpec]: unknown }): void {
  const check = new OptionChecker('subscribe');
  if (check.object('spec', spec)) checkSubscriptionFields(spec, check);
  check.throwIfAny();
}
