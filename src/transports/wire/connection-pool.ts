// The connections of one client, by broker: each is opened once and shared by all producers and consumers, and
// forgotten when it closes.
import { connect as connectPlain } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { TransportError, isClosed, toError } from '../../core/errors.js';
import { socketError } from './connect-errors.js';
import { Connection } from './connection.js';
import { HostRotation } from './host-rotation.js';
import { alreadyClosed, connectionLost } from './server-errors.js';
import { hostPortText } from './service-url.js';
import type { HostPort } from './service-url.js';
import { tlsConnection } from './tls-options.js';
import type { ResolvedWireOptions } from './wire-options.js';

export class ConnectionPool {
  readonly #options: ResolvedWireOptions;
  readonly #connections = new Map<string, Promise<Connection>>();
  readonly #service: HostRotation;
  /** Gives up a connection that is being opened. */
  readonly #opening = new Set<(reason: Error) => void>();
  #closed = false;

  constructor(options: ResolvedWireOptions) {
    this.#options = options;
    this.#service = new HostRotation(options.serviceUrl.hosts, options.random);
  }

  /** A connection to one of the hosts of the service URL. @throws TransportError, see `HostRotation`. */
  toService(): Promise<Connection> {
    return this.#service.reach((host) => this.to(host));
  }

  /**
   * A connection to a broker. @param physical where to connect. @param proxyToBroker `host:port` of the broker that the
   * proxy at `physical` is to connect with. @throws TransportError CONNECTION_LOST, CERTIFICATE_..., ALREADY_CLOSED, the
   * broker's refusal.
   */
  to(physical: HostPort, proxyToBroker?: string): Promise<Connection> {
    if (this.#closed) return Promise.reject(alreadyClosed('the wire client'));
    const key = `${hostPortText(physical)} ${proxyToBroker ?? ''}`;
    const known = this.#connections.get(key);
    if (known !== undefined) return known;
    const opening = this.#open(physical, proxyToBroker);
    this.#connections.set(key, opening);
    const forget = (reason: Error): void => {
      if (this.#connections.get(key) === opening) this.#connections.delete(key);
      if (isClosed(reason)) return;
      const broker = proxyToBroker ?? hostPortText(physical);
      this.#options.logger?.warn('a connection failed or was lost', { broker, error: reason });
    };
    const failed = (error: unknown): void => forget(toError(error));
    opening.then((connection) => connection.closed.then(forget), failed);
    return opening;
  }

  /** Also gives up what is being opened: a host that does not answer must not keep the client open. */
  async close(): Promise<void> {
    this.#closed = true;
    const reason = alreadyClosed('the wire client');
    for (const giveUp of this.#opening) giveUp(reason);
    const opened = await Promise.allSettled(this.#connections.values());
    for (const result of opened) if (result.status === 'fulfilled') result.value.close(reason);
  }

  /** Credentials that are kept may have become stale without anybody's knowing: then once more with fresh ones. */
  async #open(physical: HostPort, proxyToBroker: string | undefined): Promise<Connection> {
    try {
      return await this.#openOnce(physical, proxyToBroker);
    } catch (error) {
      const isRefused = error instanceof TransportError && error.code === 'AUTHENTICATION_FAILED';
      if (!isRefused || this.#options.authentication?.refused?.() !== true) throw error;
      return this.#openOnce(physical, proxyToBroker);
    }
  }

  async #openOnce(physical: HostPort, proxyToBroker: string | undefined): Promise<Connection> {
    const socket = await this.#connect(physical);
    const target = { physical, address: hostPortText(physical), proxyToBroker };
    const connection = new Connection(socket, target, this.#options);
    const giveUp = (reason: Error): void => connection.close(reason);
    this.#opening.add(giveUp);
    try {
      if (this.#closed) giveUp(alreadyClosed('the wire client'));
      await connection.handshake();
    } finally {
      this.#opening.delete(giveUp);
    }
    return connection;
  }

  #connect(physical: HostPort): Promise<Socket> {
    const { tls, connectTimeoutMs, clock } = this.#options;
    const what = `cannot connect to ${hostPortText(physical)}`;
    return new Promise((resolve, reject) => {
      const socket = tls === undefined ? connectPlain(physical) : connectTls(tlsConnection(physical, tls));
      const giveUp = (reason: Error): void => {
        timer.cancel();
        this.#opening.delete(giveUp);
        // What it still says is of no use to anybody, and must not end the process.
        socket.on('error', () => undefined);
        socket.destroy();
        reject(reason);
      };
      const failed = (error: Error): void => giveUp(socketError(what, error));
      const late = (): void => giveUp(connectionLost(`${what}: not within ${connectTimeoutMs} ms`));
      const timer = clock.setTimer(connectTimeoutMs, late);
      this.#opening.add(giveUp);
      socket.once('error', failed);
      socket.once(tls === undefined ? 'connect' : 'secureConnect', () => {
        timer.cancel();
        this.#opening.delete(giveUp);
        socket.off('error', failed);
        socket.setNoDelay(true);
        resolve(socket);
      });
    });
  }
}
