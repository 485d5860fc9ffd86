// A stand-in for a server that gives OAuth2 tokens, on a port of this machine: its tokens are JWTs that a Pulsar broker
// with the same secret accepts. What it answers can be changed while it runs.
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface TokenAnswer {
  readonly status?: number;
  /** Text as it is, else as JSON. */
  readonly body: unknown;
}

/** HS256, as brokers with `tokenSecretKey` check it. @param claims `sub` is the role, `exp` in seconds. */
export function jwt(claims: Readonly<Record<string, unknown>>, secret: Uint8Array): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part({ alg: 'HS256' })}.${part(claims)}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

export class TokenServer {
  /** The forms that came to the token endpoint. */
  readonly forms: Readonly<Record<string, string>>[] = [];
  /** How often the well-known document was asked for. */
  discoveries = 0;
  /** Undefined leaves the client waiting. */
  answer: (form: Readonly<Record<string, string>>) => TokenAnswer | undefined;
  discovery: () => TokenAnswer;
  #waiting: (() => void)[] = [];
  /** Requests whose client went away before it had an answer. */
  abandoned = 0;
  readonly #server = createServer((request, response) => void this.#handle(request, response));

  private constructor(answer: TokenServer['answer']) {
    this.answer = answer;
    this.discovery = () => ({ body: { token_endpoint: `${this.url}/token` } });
  }

  static async start(answer: TokenServer['answer']): Promise<TokenServer> {
    const server = new TokenServer(answer);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resolves once `condition` holds; looked at after each request and each end of one. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('close', () => {
      if (!response.writableFinished) this.abandoned += 1;
      this.#changed();
    });
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const answer = request.url === '/token' ? this.#token(body) : this.#discovery();
    this.#changed();
    if (answer === undefined) return;
    const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
    response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' }).end(text);
  }

  #token(body: string): TokenAnswer | undefined {
    const form = Object.fromEntries(new URLSearchParams(body));
    this.forms.push(form);
    return this.answer(form);
  }

  #discovery(): TokenAnswer {
    this.discoveries += 1;
    return this.discovery();
  }

  #changed(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
