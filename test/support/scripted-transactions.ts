// A transport whose transactions are played here, call by call: what a broker may answer to each of them can be said
// beforehand, and what was asked of it is written down. What is committed reaches the embedded broker in one turn.
import { TransportError } from '../../src/index.js';
import type { ErrorCode, MessageId, Publisher, Subscription, Transport } from '../../src/index.js';
import { formatMessageId } from '../../src/index.js';
import type { InTransaction, Transaction } from '../../src/ports/transaction.js';
import { subscriptionWith } from '../../src/testing/subscription-with.js';
import { transportWith } from './transport-with.js';

/** Called in place of a call; `run` makes it. */
export type Play = (run: () => Promise<void>) => Promise<void>;
type Step = 'begin' | 'publish' | 'acknowledge' | 'commit' | 'abort' | 'redeliver';

/** Nothing was done, and who called cannot know. */
export const fails =
  (code: ErrorCode = 'CONNECTION_LOST', retriable = true): Play =>
  () =>
    Promise.reject(new TransportError(code, `${code} on purpose`, { retriable }));

/** Nothing was done, and nothing was sent. */
export const notSent =
  (code: ErrorCode = 'CONNECTION_LOST', retriable = true): Play =>
  () =>
    Promise.reject(new TransportError(code, `${code} on purpose`, { retriable, sent: false }));

/** It was done, and the answer did not come. */
export const answerLost =
  (code: ErrorCode = 'CONNECTION_LOST', retriable = true): Play =>
  (run) =>
    run().then(() => fails(code, retriable)(run));

export const hangs: Play = () => new Promise(() => undefined);

export class ScriptedTransactions {
  /** What was asked for, in order: `t1 begin`, `t1 publish out`, `t1 acknowledge 1:0:-1`, `redeliver 1:0:-1`, `acknowledge 1:0:-1`, ... */
  readonly asked: string[] = [];
  /** What happens to the next calls of a kind, in order; one that is undefined goes as it should. */
  readonly script: Partial<Record<Step, (Play | undefined)[]>> = {};
  readonly transport: Transport;
  /** Milliseconds that the last transaction was begun with. */
  timeoutMs: number | undefined;
  readonly #open = new Set<PlayedTransaction>();
  /** The first one, number 0, is the question at start whether there are any. */
  #begun = -1;
  readonly #scriptsStart: boolean;

  /** @param scriptsStart whether the question at start is scripted and written down too */
  constructor(inner: Transport, { scriptsStart = false }: { readonly scriptsStart?: boolean } = {}) {
    this.#scriptsStart = scriptsStart;
    this.transport = transportWith(inner, {
      name: 'scripted',
      capabilities: new Set([...inner.capabilities, 'transactions']),
      subscribe: async (spec) => this.#subscription(await inner.subscribe(spec), spec.type),
      publisher: async (topic, options) => this.#publisher(await inner.publisher(topic, options)),
      newTransaction: async (options) => {
        this.timeoutMs = options?.timeoutMs;
        const transaction = new PlayedTransaction(`t${++this.#begun}`, (step, name, run) =>
          this.#play(step, name, run),
        );
        transaction.whenOver = () => this.#open.delete(transaction);
        await this.#play('begin', `${transaction.name} begin`, async () => void this.#open.add(transaction));
        return transaction;
      },
    });
  }

  /** Names of those that were neither committed nor aborted. */
  get open(): readonly string[] {
    return [...this.#open].map(({ name }) => name);
  }

  /** What is open is over for the broker, whatever it answers. */
  abortByBroker(): void {
    // Who is gone cannot be sent anything.
    for (const transaction of this.#open) transaction.abortNow().catch(() => undefined);
  }

  async #play(step: Step, asked: string, run: () => Promise<void>): Promise<void> {
    if (asked.startsWith('t0 ') && !this.#scriptsStart) return run();
    this.asked.push(asked);
    const play = this.script[step]?.shift();
    await (play === undefined ? run() : play(run));
  }

  #publisher(inner: Publisher): Publisher {
    const local = inner.topic.slice(inner.topic.lastIndexOf('/') + 1);
    return {
      topic: inner.topic,
      nextSequenceId: () => inner.nextSequenceId(),
      publish: async (message, sequenceId, where) => {
        const within = playedOf(where);
        let id: MessageId | undefined;
        await this.#play('publish', `${nameOf(within)}publish ${local}`, async () => {
          if (within === undefined) return void (id = await inner.publish(message, sequenceId));
          within.checkOpen();
          within.work.push(() => inner.publish(message, inner.nextSequenceId()));
          id = {
            ledgerId: 0,
            entryId: within.work.length,
            partition: -1,
            batchIndex: -1,
            batchSize: 0,
            topic: inner.topic,
          };
        });
        return id as MessageId;
      },
      close: () => inner.close(),
    };
  }

  #subscription(inner: Subscription, type: string): Subscription {
    const isSingle = type === 'exclusive' || type === 'failover';
    const isPending = (id: MessageId): boolean => [...this.#open].some(({ pending }) => pending.has(textOf(id)));
    return subscriptionWith(inner, {
      acknowledge: (ids, where) => {
        const within = playedOf(where);
        return this.#play('acknowledge', `${nameOf(within)}acknowledge ${ids.map(textOf).join()}`, async () => {
          if (within === undefined) return inner.acknowledge(ids);
          within.checkOpen();
          if (ids.some(isPending))
            throw new TransportError('TRANSACTION_CONFLICT', 'in another one', { retriable: false });
          for (const id of ids) within.pending.add(textOf(id));
          within.work.push(() => inner.acknowledge(ids));
          // Exclusive and Failover have to be asked (T-17).
          if (!isSingle) within.undo.push(() => inner.redeliver(ids));
        });
      },
      redeliver: (ids) =>
        this.#play('redeliver', `redeliver ${ids.map(textOf).join()}`, () =>
          inner.redeliver(ids.filter((id) => !isPending(id))),
        ),
    });
  }
}

class PlayedTransaction implements Transaction {
  readonly id = { mostBits: 0n, leastBits: 0n };
  readonly name: string;
  readonly pending = new Set<string>();
  readonly work: (() => Promise<unknown>)[] = [];
  readonly undo: (() => Promise<unknown>)[] = [];
  whenOver: () => void = () => undefined;
  readonly #play: (step: 'commit' | 'abort', asked: string, run: () => Promise<void>) => Promise<void>;
  #state: 'open' | 'committed' | 'aborted' = 'open';

  constructor(
    name: string,
    play: (step: 'commit' | 'abort', asked: string, run: () => Promise<void>) => Promise<void>,
  ) {
    this.name = name;
    this.#play = play;
  }

  /** As a client sees it that got no answer: the scripts decide what it is told. */
  get state(): Transaction['state'] {
    return 'open';
  }

  checkOpen(): void {
    if (this.#state !== 'open')
      throw new TransportError('TRANSACTION_ENDED', `it is ${this.#state}`, { retriable: false });
  }

  commit(): Promise<void> {
    return this.#play('commit', `${this.name} commit`, () => this.#end('committed', this.work));
  }

  abort(): Promise<void> {
    return this.#play('abort', `${this.name} abort`, () => this.#end('aborted', this.undo));
  }

  abortNow(): Promise<void> {
    return this.#end('aborted', this.undo);
  }

  async #end(state: 'committed' | 'aborted', parts: readonly (() => Promise<unknown>)[]): Promise<void> {
    this.checkOpen();
    this.#state = state;
    this.whenOver();
    await Promise.all(parts.map((part) => part()));
  }
}

function playedOf(where: InTransaction | undefined): PlayedTransaction | undefined {
  return where?.transaction as PlayedTransaction | undefined;
}

function nameOf(transaction: PlayedTransaction | undefined): string {
  return transaction === undefined ? '' : `${transaction.name} `;
}

function textOf(id: MessageId): string {
  return formatMessageId(id);
}
