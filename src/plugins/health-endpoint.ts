// A tiny HTTP server for probes and scrapers: `/livez`, `/readyz`, `/metrics`. It reads no bodies, keeps nothing, and
// closes with the runtime.
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PulseworkError, describeValue, toError } from '../core/errors.js';
import { OptionChecker, seconds } from '../core/options.js';
import type { Timer } from '../ports/clock.js';
import type { Plugin } from '../ports/plugin.js';
import type { RuntimeControl, SubscriptionHealth } from '../ports/runtime-view.js';

export interface HealthEndpointOptions {
  /** 0 takes any free port: see `address`. */
  readonly port: number;
  /** The address to listen on; `0.0.0.0` or `::` for probes from outside, such as Kubernetes'. @default '127.0.0.1' */
  readonly host?: string | undefined;
  /** Gives the text of `/metrics` in Prometheus' format. @default none: `/metrics` is not found */
  readonly metrics?: (() => string | Promise<string>) | undefined;
}

export interface HealthEndpoint extends Plugin {
  /** Where it listens; undefined before the start and after the end. */
  readonly address: { readonly host: string; readonly port: number } | undefined;
}

/** Scrapers at a time; a source that hangs must not take the connections that probes need. */
const MAX_METRICS_AT_ONCE = 4;
/** Refused connections come in thousands: one line at first, then at most one in this time. */
const LOG_EVERY_MS = seconds(10);
/** A probe or scraper needs one or two connections; the rest would be somebody's mistake. */
const MAX_CONNECTIONS = 32;
const MAX_HEADER_BYTES = 8 * 1_024;
/** Who has not sent a request of a few lines by then will not. */
const REQUEST_LIMIT_MS = seconds(5);
/** As long as Prometheus waits by default. */
const METRICS_LIMIT_MS = seconds(10);

/**
 * `/livez`: 200 while the process answers. `/readyz`: 200 while the runtime takes messages; 503 with the reasons while it
 * drains or a subscription is degraded. A pause is no reason: what pauses goes on by itself or by whoever asked for it.
 * Before everything is open nothing listens, and a probe finds no server. The start fails with START_FAILED when the
 * address cannot be had. Whoever can reach it can use up its connections: expose it to the network of the probes only.
 * @throws ConfigurationError on an option that is unknown or wrong.
 */
export function healthEndpoint(options: HealthEndpointOptions): HealthEndpoint {
  const check = new OptionChecker('healthEndpoint');
  if (check.object('options', options, '{ port: 8080 }')) {
    check.required(options, { port: 'a port number, 0 for any free one' });
    check.unknownOptions(options, ['port', 'host', 'metrics']);
    checkPort(options.port, check);
    check.nonEmptyString('host', options.host);
    check.function('metrics', options.metrics);
  }
  check.throwIfAny();
  return new HttpHealthEndpoint(options);
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

class HttpHealthEndpoint implements HealthEndpoint {
  readonly name = 'health-endpoint';
  readonly #port: number;
  readonly #host: string;
  readonly #metrics: HealthEndpointOptions['metrics'];
  #server: Server | undefined;
  #runtime: RuntimeControl | undefined;
  #draining = false;
  /** Ends the waits for metrics. */
  readonly #waits = new Set<() => void>();
  #refused = 0;
  #refusalsSaidMs = -Infinity;

  constructor({ port, host, metrics }: HealthEndpointOptions) {
    this.#port = port;
    this.#host = host ?? '127.0.0.1';
    this.#metrics = metrics;
  }

  get address(): HealthEndpoint['address'] {
    const bound = this.#server?.address() as AddressInfo | null | undefined;
    return bound === null || bound === undefined ? undefined : { host: bound.address, port: bound.port };
  }

  async onStart(runtime: RuntimeControl): Promise<void> {
    if (this.#runtime !== undefined)
      throw new PulseworkError('START_FAILED', 'this health endpoint is used by another runtime; make one for each');
    this.#runtime = runtime;
    this.#draining = false;
    const server = newServer((request, response) => void this.#serve(request, response));
    try {
      await this.#listen(server);
    } catch (error) {
      this.#runtime = undefined;
      throw error;
    }
    this.#server = server;
    server.on('drop', () => this.#countRefused(runtime));
    // By itself it is no reason for a process to go on.
    server.unref();
    server.on('error', (error) => runtime.logger.warn('the health endpoint has trouble', { error }));
    runtime.logger.info('health endpoint listens', this.address);
  }

  onDrain(): void {
    this.#draining = true;
  }

  /** Does not wait for connections that are kept alive, nor for answers under way. */
  async onClose(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    this.#runtime = undefined;
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
    for (const end of this.#waits) end();
  }

  /** Without it a probe that fails would tell nothing of why. */
  #countRefused({ clock, logger }: RuntimeControl): void {
    this.#refused += 1;
    if (clock.now() - this.#refusalsSaidMs < LOG_EVERY_MS) return;
    const facts = { open: MAX_CONNECTIONS, refused: this.#refused };
    logger.warn('the health endpoint refuses connections: too many are open; probes may fail', facts);
    this.#refused = 0;
    this.#refusalsSaidMs = clock.now();
  }

  #listen(server: Server): Promise<void> {
    const [host, port] = [this.#host, this.#port];
    return new Promise((resolve, reject) => {
      const failed = (error: NodeJS.ErrnoException): void => {
        const why = error.code === 'EADDRINUSE' ? 'the port is taken' : error.message;
        const message = `the health endpoint cannot listen on ${host}, port ${port}: ${why}`;
        reject(new PulseworkError('START_FAILED', message, { cause: error }));
      };
      server.once('error', failed);
      server.listen({ host, port }, () => {
        server.off('error', failed);
        resolve();
      });
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let answer: Answer;
    try {
      answer = await this.#answer(request);
    } catch (error) {
      if (request.socket.destroyed) return;
      this.#runtime?.logger.error('the health endpoint could not answer', { path: request.url, error: toError(error) });
      answer = json(500, { status: 'error' });
    }
    // A body is not read: whoever sends one gets no second request on the connection.
    const hasBody = request.headers['content-length'] !== undefined || 'transfer-encoding' in request.headers;
    response.writeHead(answer.status, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(answer.body),
      'cache-control': 'no-store',
      ...(hasBody || this.#draining ? { connection: 'close' } : {}),
      ...answer.headers,
    });
    response.end(request.method === 'HEAD' ? undefined : answer.body);
  }

  #answer({ method, url = '/' }: IncomingMessage): Answer | Promise<Answer> {
    const paths = ['/livez', '/readyz', ...(this.#metrics === undefined ? [] : ['/metrics'])];
    const path = url.split('?', 1)[0] ?? '';
    if (!paths.includes(path)) return json(404, { status: 'not-found', paths });
    if (method !== 'GET' && method !== 'HEAD')
      return { ...json(405, { status: 'method-not-allowed' }), headers: { allow: 'GET, HEAD' } };
    if (path === '/livez') return json(200, { status: 'alive' });
    return path === '/readyz' ? this.#readiness() : this.#metricsText();
  }

  #readiness(): Answer {
    const subscriptions = this.#runtime?.health() ?? [];
    // Whoever is told of it first: this plugin, or the subscriptions.
    const drains = this.#draining || subscriptions.some(({ state }) => state === 'draining');
    const reasons = [
      ...(drains ? ['the runtime drains'] : []),
      ...subscriptions.flatMap((subscription) => unreadyBecause(subscription) ?? []),
    ];
    const status = reasons.length === 0 ? 'ready' : 'not-ready';
    return json(reasons.length === 0 ? 200 : 503, { status, reasons, subscriptions });
  }

  async #metricsText(): Promise<Answer> {
    if (this.#waits.size >= MAX_METRICS_AT_ONCE) return json(503, { status: 'busy' });
    const body: unknown = await this.#inTime(this.#metrics?.());
    if (typeof body !== 'string') throw new Error(`"metrics" must give a text, got ${describeValue(body)}`);
    return { status: 200, body, headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' } };
  }

  /** Requests that never get an answer would use up the connections. */
  async #inTime(work: unknown): Promise<unknown> {
    let timer: Timer | undefined;
    let end: () => void = () => undefined;
    const tooLate = new Promise<never>((_, reject) => {
      end = () => reject(new Error(`"metrics" gave nothing within ${METRICS_LIMIT_MS} ms`));
      timer = this.#runtime?.clock.setTimer(METRICS_LIMIT_MS, end);
    });
    this.#waits.add(end);
    try {
      return await Promise.race([work, tooLate]);
    } finally {
      this.#waits.delete(end);
      timer?.cancel();
    }
  }
}

/** Node looks for late requests each `connectionsCheckingInterval`. */
function newServer(serve: (request: IncomingMessage, response: ServerResponse) => void): Server {
  const limits = {
    headersTimeout: REQUEST_LIMIT_MS,
    requestTimeout: REQUEST_LIMIT_MS,
    connectionsCheckingInterval: 1_000,
  };
  const server = createServer(
    { ...limits, keepAliveTimeout: REQUEST_LIMIT_MS, maxHeaderSize: MAX_HEADER_BYTES },
    serve,
  );
  server.maxConnections = MAX_CONNECTIONS;
  return server;
}

function unreadyBecause({ state, handler, reason }: SubscriptionHealth): string | undefined {
  return state === 'degraded'
    ? `handler ${JSON.stringify(handler)} is degraded: ${reason ?? 'no reason given'}`
    : undefined;
}

function json(status: number, body: unknown): Answer {
  return { status, body: `${JSON.stringify(body)}\n` };
}

function checkPort(port: unknown, check: OptionChecker): void {
  if (port === undefined) return;
  if (typeof port === 'number' && Number.isInteger(port) && port >= 0 && port <= 65_535) return;
  check.problem(`"port" must be a whole number from 0 to 65535, got ${describeValue(port)}`);
}
