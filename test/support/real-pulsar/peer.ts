// The tests' side of an outside client: a subprocess that speaks JSON lines on standard input and output. Requests have
// numbers and run at the same time; the peer ends when its standard input does, so none is left behind.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

/** Three times the slowest answer seen, a consumer that waits for its first message on a busy machine. */
const ANSWER_LIMIT_MS = 90_000;
const END_LIMIT_MS = 15_000;
/** How much of a peer's standard error its failures show. */
const ERROR_TAIL = 3_000;

/** An error that the peer's client library gave; `kind` is the name of its class. */
export class PeerError extends Error {
  readonly kind: string;

  constructor(peer: string, kind: string, text: string) {
    super(`${peer}: ${kind}: ${text}`);
    this.name = 'PeerError';
    this.kind = kind;
  }
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

interface Answer {
  readonly id: number;
  readonly ok?: unknown;
  readonly error?: { readonly kind: string; readonly message: string };
}

export class Peer {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  #requests = 0;
  #errorTail = '';

  constructor(name: string, command: string, args: readonly string[]) {
    this.name = name;
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
    this.#child.on('error', (error) => this.#failAll(error));
    this.#child.on('exit', (code, signal) => this.#failAll(new Error(`${name} ended (${signal ?? code ?? '?'})`)));
    this.#child.stdin!.on('error', () => undefined); // Its exit tells.
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#errorTail = (this.#errorTail + text).slice(-ERROR_TAIL);
    });
    createInterface({ input: this.#child.stdout! }).on('line', (line) => this.#answered(line));
    this.#keepProcess(false);
  }

  async request(command: string, fields: object = {}): Promise<unknown> {
    const id = (this.#requests += 1);
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
      throw new Error(`${this.name} has ended${this.#shownErrors()}`);
    }
    const answered = new Promise<unknown>((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    this.#keepProcess(true);
    this.#child.stdin!.write(`${JSON.stringify({ id, command, ...fields })}\n`);
    const limit = new AbortController();
    const late = sleep(ANSWER_LIMIT_MS, undefined, { signal: limit.signal }).then(
      () => this.#pending.get(id)?.reject(new Error(`${this.name} did not answer ${command}${this.#shownErrors()}`)),
      () => undefined,
    );
    try {
      return await Promise.race([answered, late.then(() => answered)]);
    } finally {
      limit.abort();
      this.#pending.delete(id);
      this.#keepProcess(this.#pending.size > 0);
    }
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#keepProcess(true);
    const ended = once(this.#child, 'exit');
    this.#child.stdin!.end();
    const killer = setTimeout(() => this.#child.kill('SIGKILL'), END_LIMIT_MS);
    await ended;
    clearTimeout(killer);
  }

  #answered(line: string): void {
    if (!line.startsWith('{')) return; // A library that prints.
    const { id, ok, error } = JSON.parse(line) as Answer;
    if (error === undefined) this.#pending.get(id)?.resolve(ok);
    else this.#pending.get(id)?.reject(new PeerError(this.name, error.kind, error.message));
  }

  #failAll(error: Error): void {
    for (const { reject } of this.#pending.values()) reject(new Error(`${error.message}${this.#shownErrors()}`));
    this.#pending.clear();
  }

  #shownErrors(): string {
    return this.#errorTail === '' ? '' : `; it wrote:\n${this.#errorTail}`;
  }

  /** A peer that nothing waits for does not keep a test worker from ending. */
  #keepProcess(keep: boolean): void {
    const handles = [this.#child, this.#child.stdin, this.#child.stdout, this.#child.stderr] as const;
    for (const handle of handles as readonly ({ ref?(): void; unref?(): void } | null)[]) {
      if (keep) handle?.ref?.();
      else handle?.unref?.();
    }
  }
}
