// One TCP or TLS connection to a broker or proxy: handshake, keep-alive, requests and their answers, and the way of
// what comes in to the producers and consumers that live on it. Once closed it stays closed; the pool makes a new one.
import type { Socket } from 'node:net';
import { PulseworkError, isClosed, isRefusedForGood, toError } from '../../core/errors.js';
import { VERSION } from '../../core/version.js';
import { credentialsOf, withoutSecrets } from './authentication/credentials.js';
import type { Credentials } from './authentication/credentials.js';
import { socketError } from './connect-errors.js';
import { KeepAlive } from './keep-alive.js';
import type { Command, CommandBody, CommandName } from './protocol/commands.js';
import { FrameReader } from './protocol/frame-reader.js';
import { decodeFrame, encodeCommand } from './protocol/frames.js';
import { WireFormatError } from './protocol/wire-format-error.js';
import { RequestTable } from './request-table.js';
import { connectionLost, serverError } from './server-errors.js';
import { advertisedHost, hostPortText, parseServiceUrl } from './service-url.js';
import type { HostPort } from './service-url.js';
import { SocketWriter } from './socket-writer.js';
import type { ResolvedWireOptions } from './wire-options.js';

/** What of the protocol is spoken here: everything up to "topic migrated" (20). What 21 adds is for schemas of others. */
const PROTOCOL_VERSION = 20;
const CLIENT_VERSION = `pulsework-${VERSION}`;
/** Where the broker does not tell its limit: its own default. */
const DEFAULT_MAX_MESSAGE_BYTES = 5 * 1024 * 1024;
/** Brokers take frames that much larger than a message, for the commands around it. */
const FRAME_MARGIN_BYTES = 10 * 1024;

/** A producer of this connection: what the broker says to it. */
export interface ProducerSide {
  receipt(receipt: CommandBody<'SEND_RECEIPT'>): void;
  sendFailed(error: CommandBody<'SEND_ERROR'>): void;
  /**
   * The broker closed it, or the connection is gone. Called once at most; nothing comes afterwards.
   * @param assigned the broker that has the topic now, where the old one says so: no lookup is needed.
   */
  detached(reason: Error, assigned?: BrokerAddress): void;
  /** The topic moved to another cluster: it is looked up there from now on. `detached` follows. */
  migrated(cluster: readonly HostPort[]): void;
}

/** A consumer of this connection: what the broker says to it. */
export interface ConsumerSide {
  /** @param section what stands behind the command: see `decodeEntry`. A view: copy what is kept. */
  message(message: CommandBody<'MESSAGE'>, section: Buffer): void;
  activeChanged(active: boolean): void;
  /** The topic was terminated, and the subscription has acknowledged all of it. */
  endReached(): void;
  /** As of a producer. */
  detached(reason: Error, assigned?: BrokerAddress): void;
  migrated(cluster: readonly HostPort[]): void;
}

/** Who is told by this connection which topics of a namespace come and go. */
export interface WatcherSide {
  topicsChanged(update: CommandBody<'WATCH_TOPIC_UPDATE'>): void;
  /** The connection is gone, and the watching with it. */
  detached(reason: Error): void;
}

type BodyWithoutRequestId<N extends CommandName> = Omit<CommandBody<N>, 'requestId'>;
type RequestName = { [N in CommandName]: CommandBody<N> extends { requestId: number } ? N : never }[CommandName];

export interface BrokerAddress {
  /** Where to connect. */
  readonly physical: HostPort;
  /** The broker behind a proxy, `host:port`. */
  readonly proxyToBroker: string | undefined;
}

export interface ConnectionTarget extends BrokerAddress {
  /** `physical` as text. */
  readonly address: string;
}

export type BrokerFeatures = NonNullable<CommandBody<'CONNECTED'>['featureFlags']>;

interface AssignedUrls {
  readonly assignedBrokerServiceUrl?: string | undefined;
  readonly assignedBrokerServiceUrlTls?: string | undefined;
}

export class Connection {
  readonly target: ConnectionTarget;
  /** Resolves, never rejects, with the reason once the connection is closed. */
  readonly closed: Promise<Error>;
  readonly producers = new Map<number, ProducerSide>();
  readonly consumers = new Map<number, ConsumerSide>();
  readonly watchers = new Map<number, WatcherSide>();
  #features: BrokerFeatures = {};
  #maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES;
  readonly #options: ResolvedWireOptions;
  readonly #socket: Socket;
  readonly #writer: SocketWriter;
  readonly #reader: FrameReader;
  readonly #requests: RequestTable;
  #keepAlive: KeepAlive | undefined;
  #reason: Error | undefined;
  /** Aborts when the connection closes. */
  readonly #closing = new AbortController();
  /** What the broker was told last, which its words may repeat. */
  #secret = '';
  #resolveClosed: (reason: Error) => void = () => undefined;
  #connected: ((answer: CommandBody<'CONNECTED'>) => void) | undefined;

  readonly #handlers: { readonly [N in CommandName]?: (body: CommandBody<N>) => void } = {
    CONNECTED: (answer) => this.#connected?.(answer),
    PING: () => this.send('PONG', {}),
    PONG: () => undefined,
    AUTH_CHALLENGE: () => void this.#answerChallenge(),
    SEND_RECEIPT: (receipt) => this.producers.get(receipt.producerId)?.receipt(receipt),
    SEND_ERROR: (error) => this.producers.get(error.producerId)?.sendFailed(error),
    ACTIVE_CONSUMER_CHANGE: (change) => this.consumers.get(change.consumerId)?.activeChanged(change.isActive ?? false),
    CLOSE_PRODUCER: (close) => this.#closedByBroker(this.producers, close.producerId, close),
    CLOSE_CONSUMER: (close) => this.#closedByBroker(this.consumers, close.consumerId, close),
    TOPIC_MIGRATED: (migration) => this.#migrated(migration),
    PRODUCER_SUCCESS: (answer) => this.#producerAnswer(answer),
    WATCH_TOPIC_UPDATE: (update) => this.watchers.get(update.watcherId)?.topicsChanged(update),
    REACHED_END_OF_TOPIC: ({ consumerId }) => this.consumers.get(consumerId)?.endReached(),
    ERROR: (error) => this.#errorAnswer(error),
  };

  /** @param socket connected already. Call `handshake` before anything else. */
  constructor(socket: Socket, target: ConnectionTarget, options: ResolvedWireOptions) {
    this.target = target;
    this.#options = options;
    this.#socket = socket;
    this.#writer = new SocketWriter(socket, options.clock);
    this.#requests = new RequestTable(options.clock);
    this.#reader = new FrameReader(DEFAULT_MAX_MESSAGE_BYTES + FRAME_MARGIN_BYTES, (frame) => this.#frame(frame));
    this.closed = new Promise((resolve) => (this.#resolveClosed = resolve));
    socket.on('data', (chunk: Buffer) => this.#received(chunk));
    socket.on('error', (error) => this.#failed(socketError(`connection to ${target.address}`, error)));
    socket.on('close', () => this.#lost('the other side closed it'));
  }

  get isOpen(): boolean {
    return this.#reason === undefined;
  }

  /** The largest message, metadata included, that the broker takes. */
  get maxMessageBytes(): number {
    return this.#maxMessageBytes;
  }

  /** What the broker can do beyond the minimum. */
  get features(): BrokerFeatures {
    return this.#features;
  }

  /** Whether the broker takes NEGATIVE_ACK, and this client may send it. */
  get takesOrderedNegativeAck(): boolean {
    return this.#options.experimentalOrderedNegativeAck && this.#features.supportsKeyOrderedNegativeAck === true;
  }

  /** @throws TransportError when the broker refuses or the time is up; the connection is closed then. */
  async handshake(): Promise<void> {
    const { authentication, connectTimeoutMs, clock } = this.#options;
    const timer = clock.setTimer(connectTimeoutMs, () => this.#lost(`no CONNECTED within ${connectTimeoutMs} ms`));
    try {
      const connected = new Promise<CommandBody<'CONNECTED'>>((resolve) => (this.#connected = resolve));
      const credentials = authentication === undefined ? {} : await this.#credentials();
      if (this.#reason !== undefined) throw this.#reason;
      this.send('CONNECT', {
        clientVersion: CLIENT_VERSION,
        protocolVersion: PROTOCOL_VERSION,
        ...credentials,
        proxyToBrokerUrl: this.target.proxyToBroker,
        featureFlags: {
          ...{ supportsAuthRefresh: true, supportsBrokerEntryMetadata: true, supportsTopicWatchers: true },
          supportsKeyOrderedNegativeAck: this.#options.experimentalOrderedNegativeAck || undefined,
        },
      });
      const answer = await Promise.race([connected, this.closed]);
      if (answer instanceof Error) throw answer;
      this.#established(answer);
    } catch (error) {
      this.close(error instanceof PulseworkError ? error : connectionLost(toError(error).message, error));
      throw this.#reason ?? error;
    } finally {
      timer.cancel();
    }
  }

  /** Nothing is sent on a closed connection: who waits for an answer is told by `detached` and `request`. */
  send<N extends CommandName>(name: N, body: CommandBody<N>): void {
    this.sendFrame(encodeCommand(name, body));
  }

  sendFrame(frame: Buffer): void {
    if (this.#reason === undefined) this.#writer.write(frame);
  }

  /** Sends now what waits for the end of the turn. */
  flush(): void {
    if (this.#reason === undefined) this.#writer.flush();
  }

  /**
   * Sends a command that the broker answers and resolves with the answer.
   * @param about what it is about, for errors, e.g. the topic. @throws TransportError from the broker's error,
   *   CALL_TIMED_OUT, CONNECTION_LOST. @param queued called when the broker puts the request in line: it has no time
   *   limit any more.
   */
  request<N extends RequestName>(
    name: N,
    body: BodyWithoutRequestId<N>,
    about: string,
    queued?: () => void,
  ): Promise<Command> {
    if (this.#reason !== undefined) return Promise.reject(passing(this.#reason));
    const requestId = this.#requests.nextId();
    const answer = this.#requests.wait(requestId, `${name} of ${about}`, this.#options.requestTimeoutMs, queued);
    // The compiler does not see that a body without its request id, and one, are the body.
    this.send(name, { ...body, requestId } as unknown as CommandBody<N>);
    return answer;
  }

  /** Acknowledges and resolves with the broker's answer; `request` for a command whose request id is optional. */
  requestAck(body: Omit<CommandBody<'ACK'>, 'requestId'>, about: string): Promise<Command> {
    if (this.#reason !== undefined) return Promise.reject(passing(this.#reason));
    const requestId = this.#requests.nextId();
    const answer = this.#requests.wait(requestId, `ACK on ${about}`, this.#options.requestTimeoutMs);
    this.send('ACK', { ...body, requestId });
    return answer;
  }

  /** Sends what is written, then closes. Everything that waits fails with `reason`. */
  close(reason: Error): void {
    if (this.#reason !== undefined) return;
    this.#writer.flush();
    this.#reason = reason;
    this.#keepAlive?.stop();
    this.#closing.abort();
    this.#socket.destroySoon();
    this.#requests.failAll(passing(reason));
    const { producers, consumers, watchers } = this;
    for (const side of [...producers.values(), ...consumers.values(), ...watchers.values()]) side.detached(reason);
    for (const sides of [producers, consumers, watchers]) sides.clear();
    this.#resolveClosed(reason);
  }

  #lost(what: string, cause?: unknown): void {
    this.#failed(connectionLost(`connection to ${this.target.address}: ${what}`, cause));
  }

  #failed(reason: Error): void {
    if (this.#reason !== undefined) return;
    this.close(reason);
    this.#socket.destroy();
  }

  #established(answer: CommandBody<'CONNECTED'>): void {
    this.#maxMessageBytes = answer.maxMessageSize ?? DEFAULT_MAX_MESSAGE_BYTES;
    this.#features = answer.featureFlags ?? {};
    this.#reader.maxFrameBytes = this.#maxMessageBytes + FRAME_MARGIN_BYTES;
    if ((answer.protocolVersion ?? 0) < 1) return; // Such brokers know no ping.
    const { clock, keepAliveMs } = this.#options;
    const dead = (): void => this.#lost(`nothing came for ${keepAliveMs} ms after a ping`);
    this.#keepAlive = new KeepAlive(clock, keepAliveMs, () => this.send('PING', {}), dead);
  }

  /** Not waited for once the connection is closed: who supplies them may never answer. */
  async #credentials(): Promise<Credentials> {
    const credentials = credentialsOf(this.#options.authentication, this.#closing.signal);
    const first = await Promise.race([credentials, this.closed]);
    if (first instanceof Error) throw first;
    this.#secret = Buffer.from(first.authData ?? []).toString();
    return first;
  }

  #received(chunk: Buffer): void {
    this.#keepAlive?.heard();
    try {
      this.#reader.push(chunk);
    } catch (error) {
      if (!(error instanceof WireFormatError)) throw error;
      this.#lost(`it sent what is not Pulsar's protocol: ${error.message}`, error);
    }
  }

  #frame(bytes: Buffer): void {
    if (this.#reason !== undefined) return;
    const { command, payload } = decodeFrame(bytes);
    if (command === undefined) return; // A newer broker's.
    if (command.name === 'MESSAGE') this.consumers.get(command.body.consumerId)?.message(command.body, payload);
    else this.#command(command);
  }

  /** What is no answer to a request. */
  #command(command: Command): void {
    const handle = this.#handlers[command.name] as ((body: unknown) => void) | undefined;
    if (handle === undefined) this.#answer(command);
    else handle(command.body);
  }

  #closedByBroker(sides: Map<number, ProducerSide | ConsumerSide>, id: number, urls: AssignedUrls): void {
    const side = sides.get(id);
    sides.delete(id);
    const reason = `the broker at ${this.target.address} closed it, e.g. because its topic moves`;
    side?.detached(connectionLost(reason), this.#assigned(urls));
  }

  #migrated({ resourceId, resourceType, ...urls }: CommandBody<'TOPIC_MIGRATED'>): void {
    const side = (resourceType === 0 ? this.producers : this.consumers).get(resourceId);
    const { tls } = this.#options.serviceUrl;
    const cluster = parseServiceUrl(tls ? urls.brokerServiceUrlTls : urls.brokerServiceUrl);
    if (typeof cluster !== 'string' && cluster.tls === tls) return side?.migrated(cluster.hosts);
    this.#options.logger?.error(`the broker at ${this.target.address} names no usable address of the other cluster`);
  }

  /** Not ready yet: it is in line behind the producer that has the topic for itself, and a second answer will come. */
  #producerAnswer(answer: CommandBody<'PRODUCER_SUCCESS'>): void {
    if (answer.producerReady === false) this.#requests.queued(answer.requestId);
    else this.#answer({ name: 'PRODUCER_SUCCESS', body: answer });
  }

  #assigned({ assignedBrokerServiceUrl: plain, assignedBrokerServiceUrlTls: tls }: AssignedUrls) {
    const broker = advertisedHost({ plain, tls }, this.#options.serviceUrl.tls);
    if (broker === undefined) return undefined;
    const { physical, proxyToBroker } = this.target;
    if (proxyToBroker === undefined) return { physical: broker, proxyToBroker };
    return { physical, proxyToBroker: hostPortText(broker) };
  }

  #errorAnswer({ requestId, error, message }: CommandBody<'ERROR'>): void {
    const subject = this.#requests.subjectOf(requestId);
    if (subject !== undefined) return this.#requests.fail(requestId, serverError(subject, error, message));
    if (requestId !== -1) return;
    // Of a name and a password the latter alone, too.
    const words = withoutSecrets(message, [this.#secret, this.#secret.slice(this.#secret.indexOf(':') + 1)]);
    this.close(serverError(`connection to ${this.target.address}`, error, words));
  }

  /** Answers with an `error` field of their own fail their request; lookups are read by who asked. */
  #answer(command: Command): void {
    const { requestId, error, message } = command.body as { requestId?: number; error?: number; message?: string };
    if (requestId === undefined) return;
    const subject = this.#requests.subjectOf(requestId);
    if (subject === undefined) return; // Too late, or never asked.
    // Absent is no error; 0 is one, UnknownError.
    if (error !== undefined) this.#requests.fail(requestId, serverError(subject, error, message));
    else this.#requests.answer(requestId, command);
  }

  async #answerChallenge(): Promise<void> {
    const { authentication, connectTimeoutMs, clock } = this.#options;
    const late = (): void => this.#lost(`no fresh credentials within ${connectTimeoutMs} ms`);
    const timer = clock.setTimer(connectTimeoutMs, late);
    try {
      authentication?.refused?.();
      const { authMethodName, authData } = await this.#credentials();
      this.send('AUTH_RESPONSE', {
        clientVersion: CLIENT_VERSION,
        response: { authMethodName: authMethodName ?? 'none', authData: authData ?? Buffer.alloc(0) },
        protocolVersion: PROTOCOL_VERSION,
      });
    } catch (error) {
      this.#lost(`no fresh credentials: ${toError(error).message}`, error);
    } finally {
      timer.cancel();
    }
  }
}

/**
 * The same for a request: that the broker wants no more of this connection, say because a token has expired, does not
 * mean that it would refuse the request on another one.
 */
function passing(reason: Error): Error {
  if (!(reason instanceof PulseworkError) || isClosed(reason)) return reason;
  return isRefusedForGood(reason) ? connectionLost(reason.message, reason) : reason;
}
