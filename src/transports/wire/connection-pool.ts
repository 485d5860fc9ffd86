// The connections of one client, by broker: each is opened once and shared by all producers and consumers, and
// forgotten when it closes.
import { connect as connectPlain, isIP } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ConnectionOptions } from 'node:tls';
import { Connection } from './connection.js';
import { alreadyClosed, connectionLost } from './server-errors.js';
import { hostPortText } from './service-url.js';
import type { HostPort } from './service-url.js';
import type { ResolvedWireOptions } from './wire-options.js';

export class ConnectionPool {
  readonly #options: ResolvedWireOptions;
  readonly #connections = new Map<string, Promise<Connection>>();
  /** Where connecting to the service URL begins; moves on when a host cannot be reached. */
  #firstHost: number;
  #closed = false;

  constructor(options: ResolvedWireOptions) {
    this.#options = options;
    this.#firstHost = Math.floor(options.random() * options.serviceUrl.hosts.length);
  }

  /** A connection to one of the hosts of the service URL. @throws TransportError of the last host tried. */
  async toService(): Promise<Connection> {
    const { hosts } = this.#options.serviceUrl;
    let failure: unknown = connectionLost('the service URL names no host');
    for (let tried = 0; tried < hosts.length; tried++) {
      const host = hosts[this.#firstHost % hosts.length];
      if (host === undefined) break;
      try {
        return await this.to(host);
      } catch (error) {
        failure = error;
        this.#firstHost += 1;
      }
    }
    throw failure;
  }

  /**
   * A connection to a broker. @param physical where to connect. @param proxyToBroker `host:port` of the broker that the
   * proxy at `physical` is to connect with. @throws TransportError CONNECTION_LOST, ALREADY_CLOSED, the broker's refusal.
   */
  to(physical: HostPort, proxyToBroker?: string): Promise<Connection> {
    if (this.#closed) return Promise.reject(alreadyClosed('the wire client'));
    const key = `${hostPortText(physical)} ${proxyToBroker ?? ''}`;
    const known = this.#connections.get(key);
    if (known !== undefined) return known;
    const opening = this.#open(physical, proxyToBroker);
    this.#connections.set(key, opening);
    const forget = (): void => {
      if (this.#connections.get(key) === opening) this.#connections.delete(key);
    };
    opening.then((connection) => connection.closed.then(forget), forget);
    return opening;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const opened = await Promise.allSettled(this.#connections.values());
    for (const result of opened)
      if (result.status === 'fulfilled') result.value.close(alreadyClosed('the wire client'));
  }

  async #open(physical: HostPort, proxyToBroker: string | undefined): Promise<Connection> {
    const socket = await this.#connect(physical);
    const connection = new Connection(
      socket,
      { physical, address: hostPortText(physical), proxyToBroker },
      this.#options,
    );
    await connection.handshake();
    if (this.#closed) connection.close(alreadyClosed('the wire client'));
    return connection;
  }

  #connect(physical: HostPort): Promise<Socket> {
    const { serviceUrl, connectTimeoutMs, clock } = this.#options;
    const address = hostPortText(physical);
    return new Promise((resolve, reject) => {
      const socket = serviceUrl.tls ? connectTls(this.#tlsOptions(physical)) : connectPlain(physical);
      const failed = (error: Error): void => {
        timer.cancel();
        socket.destroy();
        reject(connectionLost(`cannot connect to ${address}: ${error.message}`, error));
      };
      const timer = clock.setTimer(connectTimeoutMs, () => failed(new Error(`not within ${connectTimeoutMs} ms`)));
      socket.once('error', failed);
      socket.once(serviceUrl.tls ? 'secureConnect' : 'connect', () => {
        timer.cancel();
        socket.off('error', failed);
        socket.setNoDelay(true);
        resolve(socket);
      });
    });
  }

  #tlsOptions({ host, port }: HostPort): ConnectionOptions {
    const { ca, cert, key, passphrase, verifyHostName } = this.#options.tls;
    return {
      host,
      port,
      // The extension for the server's name is for names; an address is checked against the certificate all the same.
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(ca === undefined ? {} : { ca: ca as NonNullable<ConnectionOptions['ca']> }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(passphrase === undefined ? {} : { passphrase }),
      ...(verifyHostName === false ? { checkServerIdentity: () => undefined } : {}),
    };
  }
}
