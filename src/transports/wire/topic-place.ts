// Where one topic is now: the broker that the last one named when it closed us, the cluster that it migrated to, or
// what a lookup says.
import type { BrokerAddress, Connection } from './connection.js';
import type { HostPort } from './service-url.js';
import type { WireContext } from './wire-context.js';

export class TopicPlace {
  readonly #topic: string;
  readonly #context: Pick<WireContext, 'lookup' | 'pool'>;
  #assigned: BrokerAddress | undefined;
  #cluster: readonly HostPort[] | undefined;
  #registrationEnds: (reason: Error) => void = () => undefined;

  constructor(context: Pick<WireContext, 'lookup' | 'pool'>, topic: string) {
    this.#context = context;
    this.#topic = topic;
  }

  /** The topic left its broker. @param assigned where it is now, as that broker said. */
  left(reason: Error, assigned: BrokerAddress | undefined): void {
    this.#assigned = assigned;
    this.#registrationEnds(reason);
  }

  /** The broker's answer to a registration; rejects at once when the topic leaves meanwhile: then none will come. */
  unlessLeft<T>(answer: Promise<T>): Promise<T> {
    const left = new Promise<never>((_, reject) => (this.#registrationEnds = reject));
    return Promise.race([answer, left]);
  }

  /** It is on another cluster, for good: lookups ask there. */
  migratedTo(cluster: readonly HostPort[]): void {
    this.#cluster = cluster;
  }

  /** An assigned broker is tried once; whatever goes wrong with it, a lookup tells more. @throws TransportError */
  connect(): Promise<Connection> {
    const assigned = this.#assigned;
    this.#assigned = undefined;
    const { lookup, pool } = this.#context;
    if (assigned === undefined) return lookup.connectionFor(this.#topic, this.#cluster);
    return pool.to(assigned.physical, assigned.proxyToBroker);
  }
}
