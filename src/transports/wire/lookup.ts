// Finds the broker that serves a topic, and how many partitions a topic has. A lookup is also what makes a broker load
// a topic, so it comes before each attempt to attach to one.
import { TransportError } from '../../core/errors.js';
import { ConcurrencyLimit } from './concurrency-limit.js';
import type { Connection } from './connection.js';
import type { ConnectionPool } from './connection-pool.js';
import type { Command, CommandBody } from './protocol/commands.js';
import { repeatPassing } from './repeat-passing.js';
import { connectionLost, serverError } from './server-errors.js';
import { advertisedHost, hostPortText } from './service-url.js';
import type { HostPort } from './service-url.js';
import type { ResolvedWireOptions } from './wire-options.js';

type LookupBody = Omit<CommandBody<'LOOKUP'>, 'requestId'>;

/** Brokers that send a client in a circle are a fault of the cluster, and must not become one of the client. */
const MAX_REDIRECTS = 20;
/** Brokers refuse lookups when they have too many: a client with thousands of topics must not ask for all at once. */
const MAX_CONCURRENT_LOOKUPS = 50;

export class Lookup {
  readonly #pool: ConnectionPool;
  readonly #options: ResolvedWireOptions;
  /** Lookups under way by topic: equal ones share the answer. */
  readonly #underWay = new Map<string, Promise<Connection>>();
  readonly #limit = new ConcurrencyLimit(MAX_CONCURRENT_LOOKUPS);

  constructor(pool: ConnectionPool, options: ResolvedWireOptions) {
    this.#pool = pool;
    this.#options = options;
  }

  /**
   * 0 for a topic without partitions. What fails for a passing reason is repeated until `operationTimeoutMs` is over.
   * The broker may make a topic that does not exist. @throws TransportError TOPIC_NOT_FOUND, CONNECTION_LOST, ...
   */
  partitions(topic: string): Promise<number> {
    return repeatPassing(() => this.#limit.run(() => this.#askPartitions(topic, true)), this.#options);
  }

  /** The same, asked once, of a topic that is not to be made again where it was deleted. @throws TransportError */
  partitionsNow(topic: string): Promise<number> {
    return this.#limit.run(() => this.#askPartitions(topic, false));
  }

  /**
   * A connection to the broker that serves `topic` now. @param cluster the hosts to ask, where the topic moved to another
   * cluster. @throws TransportError
   */
  connectionFor(topic: string, cluster?: readonly HostPort[]): Promise<Connection> {
    const key = [topic, ...(cluster ?? []).map(hostPortText)].join(' ');
    const known = this.#underWay.get(key);
    if (known !== undefined) return known;
    const lookup = this.#limit.run(() => this.#find(topic, cluster)).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, lookup);
    return lookup;
  }

  async #askPartitions(topic: string, create: boolean): Promise<number> {
    const connection = await this.#pool.toService();
    // Brokers that do not know the field would take it for a wish to create.
    const only = !create && connection.features.supportsGetPartitionedMetadataWithoutAutoCreation === true;
    const body = only ? { topic, metadataAutoCreationEnabled: false } : { topic };
    const answer = await connection.request('PARTITIONED_METADATA', body, topic);
    if (answer.name !== 'PARTITIONED_METADATA_RESPONSE') throw unexpected(topic, answer.name);
    if (answer.body.response === 1) throw serverError(`partitions of ${topic}`, 0, answer.body.message);
    return answer.body.partitions ?? 0;
  }

  async #find(topic: string, cluster: readonly HostPort[] | undefined): Promise<Connection> {
    let asked: Connection = await (cluster === undefined ? this.#pool.toService() : this.#toOneOf(cluster));
    let authoritative = false;
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      const { listenerName } = this.#options;
      const body: LookupBody = { topic, authoritative, advertisedListenerName: listenerName };
      const answer: Command = await asked.request('LOOKUP', body, topic);
      if (answer.name !== 'LOOKUP_RESPONSE') throw unexpected(topic, answer.name);
      const { response, message } = answer.body;
      if (response === 2) throw serverError(`LOOKUP of ${topic}`, 0, message);
      const broker = this.#brokerOf(topic, answer.body);
      if (response === 1) return this.#connect(asked, broker, answer.body.proxyThroughServiceUrl === true);
      authoritative = answer.body.authoritative === true;
      asked = await this.#pool.to(broker);
    }
    const text = `LOOKUP of ${topic}: more than ${MAX_REDIRECTS} redirects`;
    throw new TransportError('CONNECTION_LOST', text, { retriable: true });
  }

  /** @throws TransportError of the last host tried. */
  async #toOneOf(hosts: readonly HostPort[]): Promise<Connection> {
    let failure: unknown;
    for (const host of hosts) {
      try {
        return await this.#pool.to(host);
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  #brokerOf(topic: string, { brokerServiceUrl, brokerServiceUrlTls }: CommandBody<'LOOKUP_RESPONSE'>): HostPort {
    const { tls } = this.#options.serviceUrl;
    const host = advertisedHost({ plain: brokerServiceUrl, tls: brokerServiceUrlTls }, tls);
    if (host !== undefined) return host;
    const url = tls ? brokerServiceUrlTls : brokerServiceUrl;
    throw connectionLost(`LOOKUP of ${topic}: the broker gave no usable ${tls ? 'TLS ' : ''}address, "${url ?? ''}"`);
  }

  /** Through the proxy that was asked where the broker says so, unless that "proxy" is the broker itself. */
  async #connect(asked: Connection, broker: HostPort, throughProxy: boolean): Promise<Connection> {
    const address = hostPortText(broker);
    if (!throughProxy || asked.target.address === address) return this.#pool.to(broker);
    return this.#pool.to(asked.target.physical, address);
  }
}

function unexpected(topic: string, name: string): TransportError {
  return connectionLost(`lookup of ${topic}: the broker answered ${name}`);
}
