// A module with the shape and the odd behaviours of the official `pulsar-client`, on the wire client and a real broker: its
// addon needs a binary that cannot be had everywhere. What would end the process is written down instead.
import type { SubscriptionType } from 'pulsework';
import type { OfficialModule } from 'pulsework/pulsar';
import type { Authentication } from 'pulsework/wire';
import { WireClient } from 'pulsework/wire';
import { ConnectionPool } from '../../../src/transports/wire/connection-pool.js';
import { Lookup } from '../../../src/transports/wire/lookup.js';
import { resolveWireOptions } from '../../../src/transports/wire/wire-options.js';
import type { OddBehaviours } from './odd-behaviours.js';
import { ALL_ODD, Violations } from './odd-behaviours.js';
import { ConsumerCore, StandInConsumer } from './stand-in-consumer.js';
import { failure, failureOf } from './stand-in-errors.js';
import { StandInMessage, messageIdStatics } from './stand-in-messages.js';
import { ProducerCore, StandInProducer } from './stand-in-producer.js';

type Config = Readonly<Record<string, unknown>>;
type LogHandler = (level: number, file: string, line: number, message: string) => void;

const TYPES: Readonly<Record<string, SubscriptionType>> = {
  Exclusive: 'exclusive',
  Failover: 'failover',
  Shared: 'shared',
  KeyShared: 'key-shared',
};

export interface PulsarClientStandIn {
  /** What `import('pulsar-client')` would give. */
  readonly module: OfficialModule;
  /** What would have ended the process, in words. A test that is not about it expects none. */
  readonly violations: readonly string[];
  /** What was collected as garbage while it was open. */
  readonly collected: readonly string[];
  /** Every consumer that was made, the oldest first. */
  readonly consumers: readonly ConsumerCore[];
  /** What each consumer and producer was made with. */
  readonly configs: readonly Config[];
  /** Clients that were made and not closed. */
  readonly openClients: () => number;
  /** As `process.exit()`: what was not sent is lost. */
  exit(): Promise<void>;
}

export function pulsarClientStandIn(switches: Partial<OddBehaviours> = {}): PulsarClientStandIn {
  const world = new StandInWorld({ ...ALL_ODD, ...switches });
  return {
    module: world.module(),
    violations: world.violations.list,
    collected: world.collected,
    consumers: world.consumers,
    configs: world.configs,
    openClients: () => world.clients.size,
    exit: () => world.exit(),
  };
}

/** What all clients of one "process" share. */
class StandInWorld {
  readonly odd: OddBehaviours;
  readonly violations = new Violations();
  readonly collected: string[] = [];
  readonly consumers: ConsumerCore[] = [];
  readonly configs: Config[] = [];
  readonly clients = new Set<ClientCore>();
  readonly #registry = new FinalizationRegistry<() => void>((collected) => collected());
  #logHandler: LogHandler | undefined;
  #hasFirstClient = false;

  constructor(odd: OddBehaviours) {
    this.odd = odd;
  }

  /**
   * Calls `collected` with `core` once nobody refers to `held` any more. The core is not kept by that: errors in it may keep
   * who called it, by their stacks.
   */
  watch<C extends object>(held: object, core: C, collected: (core: C) => void): void {
    if (!this.odd.closesWhatIsCollected) return;
    const weakly = new WeakRef(core);
    this.#registry.register(held, () => {
      const left = weakly.deref();
      if (left !== undefined) collected(left);
    });
  }

  /** The level is read from the first client there ever was. */
  watchFirst(client: object): void {
    if (this.#hasFirstClient) return;
    this.#hasFirstClient = true;
    this.watch(client, this, () => this.violations.note('the client that the log level is read from was collected'));
  }

  log(level: number, message: string): void {
    try {
      this.#logHandler?.(level, 'ClientImpl.cc', 1, message);
    } catch {
      this.violations.note('the log handler threw');
    }
  }

  async exit(): Promise<void> {
    await Promise.all(this.consumers.map((consumer) => consumer.exit()));
    await Promise.all([...this.clients].map((client) => client.end()));
  }

  module(): OfficialModule {
    // oxlint-disable-next-line typescript/no-this-alias -- the class below has a `this` of its own
    const world = this;
    class Client {
      readonly #core: ClientCore;

      constructor(config: Config) {
        this.#core = new ClientCore(world, config);
        world.watchFirst(this);
        world.watch(this, this.#core, (core) => core.collected());
        world.log(1, `client for ${String(config['serviceUrl'])}`);
      }

      static setLogHandler(handler: LogHandler): void {
        world.#logHandler = handler;
      }

      subscribe(config: Config): Promise<StandInConsumer> {
        return this.#core.subscribe(config);
      }

      createProducer(config: Config): Promise<StandInProducer> {
        return this.#core.createProducer(config);
      }

      getPartitionsForTopic(topic: unknown): Promise<string[]> {
        return this.#core.partitions(topic);
      }

      close(): Promise<null> {
        return this.#core.close();
      }
    }
    const MessageId = messageIdStatics(this.violations, this.odd);
    const authentication = authenticationClasses();
    // In the client these are classes; `typeof` of each is what the adapter looks at.
    const shape = { Client, Message: StandInMessage, MessageId: Object.assign(class {}, MessageId), ...authentication };
    return shape as unknown as OfficialModule;
  }
}

class GivenAuthentication {
  readonly parameters: Config;

  constructor(parameters: Config) {
    this.parameters = parameters;
  }
}

class AuthenticationToken extends GivenAuthentication {}

function authenticationClasses() {
  return {
    AuthenticationToken,
    AuthenticationTls: class extends GivenAuthentication {},
    AuthenticationBasic: class extends GivenAuthentication {},
    AuthenticationOauth2: class extends GivenAuthentication {},
  };
}

class ClientCore {
  readonly #world: StandInWorld;
  readonly #wire: WireClient;
  readonly #pool: ConnectionPool;
  readonly #lookup: Lookup;
  readonly #consumers: ConsumerCore[] = [];
  readonly #producers: ProducerCore[] = [];
  #closed = false;

  constructor(world: StandInWorld, config: Config) {
    this.#world = world;
    const options = { serviceUrl: String(config['serviceUrl']), authentication: this.#authenticationOf(config) };
    this.#wire = new WireClient(options);
    const resolved = resolveWireOptions(options);
    this.#pool = new ConnectionPool(resolved);
    this.#lookup = new Lookup(this.#pool, resolved);
    world.clients.add(this);
  }

  async subscribe(config: Config): Promise<StandInConsumer> {
    this.#checkOpen('Failed to create consumer');
    const { violations, odd } = this.#world;
    this.#world.configs.push(config);
    checkConsumer(config, violations);
    const type = TYPES[String(config['subscriptionType'])] ?? 'exclusive';
    const core = new ConsumerCore(
      await this.#wire
        .openSubscription({
          topics: [String(config['topic'])],
          subscription: String(config['subscription']),
          type,
          initialPosition: config['subscriptionInitialPosition'] === 'Earliest' ? 'earliest' : 'latest',
          prefetch: numberOr(config['receiverQueueSize'], 1_000),
          ...(typeof config['consumerName'] === 'string' && { consumerName: config['consumerName'] }),
        })
        .catch((error: unknown) => {
          throw failureOf('Failed to create consumer', error, odd);
        }),
      {
        singleActive: type === 'exclusive' || type === 'failover',
        nackDelayMs: numberOr(config['nAckRedeliverTimeoutMs'], 60_000),
        batchIndexAcks: config['batchIndexAckEnabled'] === true,
      },
      odd,
      violations,
    );
    this.#consumers.push(core);
    this.#world.consumers.push(core);
    const consumer = new StandInConsumer(core, violations);
    const { collected } = this.#world;
    this.#world.watch(consumer, core, (left) => {
      if (left.connected) collected.push('consumer');
      left.collected();
    });
    return consumer;
  }

  async createProducer(config: Config): Promise<StandInProducer> {
    this.#checkOpen('Failed to create producer');
    const { violations, odd } = this.#world;
    this.#world.configs.push(config);
    checkProducer(config, violations);
    try {
      const wire = await this.#wire.publisher(String(config['topic']), {
        batching: false,
        keyHash: config['hashingScheme'] === 'Murmur3_32Hash' ? 'murmur3' : 'java',
        sendTimeoutMs: numberOr(config['sendTimeoutMs'], 30_000),
      });
      const batched = config['batchingEnabled'] !== false;
      const core = new ProducerCore(wire, { batched, maxPending: numberOr(config['maxPendingMessages'], 1_000) }, odd);
      this.#producers.push(core);
      const producer = new StandInProducer(core, violations);
      const { collected } = this.#world;
      this.#world.watch(producer, core, (left) => {
        if (left.closed) return;
        collected.push('producer');
        void left.close();
      });
      return producer;
    } catch (error) {
      throw failureOf('Failed to create producer', error, odd);
    }
  }

  async partitions(topic: unknown): Promise<string[]> {
    this.#checkOpen('GetPartitionsForTopic');
    const name = String(topic);
    try {
      const count = await this.#lookup.partitions(name);
      return count === 0 ? [name] : Array.from({ length: count }, (_, i) => `${name}-partition-${i}`);
    } catch (error) {
      throw failureOf('GetPartitionsForTopic', error, this.#world.odd);
    }
  }

  async close(): Promise<null> {
    this.#checkOpen('Failed to close client');
    this.#closed = true;
    await Promise.all(this.#consumers.map((consumer) => consumer.close()));
    await this.#closeRest();
    return null;
  }

  /** Nobody holds the client any more: all that was made from it closes. */
  collected(): void {
    if (this.#closed) return;
    this.#world.collected.push('client');
    this.#closed = true;
    void Promise.all(this.#consumers.map((consumer) => consumer.exit())).then(() => this.#closeRest());
  }

  async end(): Promise<void> {
    this.#closed = true;
    await this.#closeRest();
  }

  async #closeRest(): Promise<void> {
    this.#world.clients.delete(this);
    await Promise.all(this.#producers.filter(({ closed }) => !closed).map((producer) => producer.close()));
    await this.#wire.close();
    await this.#pool.close();
  }

  #checkOpen(prefix: string): void {
    if (this.#closed) throw failure(prefix, 'AlreadyClosed');
  }

  #authenticationOf({ authentication }: Config): Authentication | undefined {
    if (!(authentication instanceof AuthenticationToken)) return undefined;
    const { token } = authentication.parameters;
    return {
      method: 'token',
      data: async () => {
        try {
          return typeof token === 'function' ? String(await (token as () => unknown)()) : String(token);
        } catch {
          return this.#world.violations.abort('the token supplier threw or rejected');
        }
      },
    };
  }
}

function checkConsumer(config: Config, violations: Violations): void {
  for (const [name, value] of Object.entries(config)) {
    if (typeof value === 'string' && value.includes('\0')) violations.abort(`a NUL in ${name}`);
  }
  if (config['deadLetterPolicy'] !== undefined) violations.abort('a native dead letter policy');
  if (config['listener'] !== undefined) violations.abort('a listener');
  if (config['receiverQueueSize'] === 0) violations.abort('a queue of 0 never delivers the rest of a batch');
  const { ackTimeoutMs } = config;
  if (ackTimeoutMs !== undefined && ackTimeoutMs !== 0) violations.abort('a native ack timeout');
  if (typeof config['subscription'] !== 'string' || config['subscription'] === '') {
    throw new Error('Subscription is required and must be specified as a string when creating consumer');
  }
}

function checkProducer(config: Config, violations: Violations): void {
  if (config['batchingMaxMessages'] === 1) violations.abort('batchingMaxMessages: 1');
  if (config['chunkingEnabled'] === true && config['batchingEnabled'] !== false)
    violations.abort('chunks with batches');
  if (config['blockIfQueueFull'] === true) violations.abort('blockIfQueueFull stops the event loop');
}

/** What is no number of 0 or more is ignored. */
function numberOr(value: unknown, fallback: number): number {
  return typeof value === 'number' && value >= 0 ? value : fallback;
}
