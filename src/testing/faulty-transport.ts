// A transport with one bad moment: the n-th call to the broker goes wrong in a chosen way, everything else works.
// Walking n over all calls of a scenario shows what each of them can do to a message.
import { TransportError } from '../core/errors.js';
import type { Clock } from '../ports/clock.js';
import type { InTransaction, Transaction, TransactionOptions } from '../ports/transaction.js';
import type { Publisher, PublisherRequest, Subscription, Transport } from '../ports/transport.js';
import { subscriptionWith } from './subscription-with.js';

/**
 * How the call goes wrong. `throws`: at once, nothing done, and the error says that nothing was sent. `rejects-late`: after 5 s, nothing done. `answer-lost`: done,
 * but the answer is an error. `hangs`: never answers, nothing done. `hangs-done`: done, but never answers.
 * `process-gone`: nothing done, and `onGone` is called: the test ends the process there. `process-gone-done`: the same
 * after it was done.
 */
export type Fault =
  | 'throws'
  | 'rejects-late'
  | 'answer-lost'
  | 'hangs'
  | 'hangs-done'
  | 'process-gone'
  | 'process-gone-done';
export const FAULTS: readonly Fault[] = [
  'throws',
  'rejects-late',
  'answer-lost',
  'hangs',
  'hangs-done',
  'process-gone',
  'process-gone-done',
];

/** The calls that are counted: those that tell the broker, or a store, something. */
export type CountedCall =
  | 'publisher'
  | 'publish'
  | 'acknowledge'
  | 'redeliver'
  | 'begin'
  | 'commit'
  | 'abort'
  | 'store';

export interface FaultPlan {
  /** The call that goes wrong, counted from 1; 0 for none. */
  readonly at: number;
  readonly fault: Fault;
  readonly clock: Clock;
  /** Told of each counted call, before it is made. */
  readonly onCall?: ((call: CountedCall) => void) | undefined;
  /** Called where the process is to end. */
  readonly onGone?: (() => void) | undefined;
}

const LATE_MS = 5_000;

export class FaultyTransport implements Transport {
  readonly #inner: Transport;
  readonly #plan: FaultPlan;
  #counted = 0;
  #hit: CountedCall | undefined;
  #gone = false;

  constructor(inner: Transport, plan: FaultPlan) {
    this.#inner = inner;
    this.#plan = plan;
  }

  get name(): string {
    return `faulty ${this.#inner.name}`;
  }
  get capabilities(): Transport['capabilities'] {
    return this.#inner.capabilities;
  }
  get clock(): Clock {
    return this.#plan.clock;
  }
  get maxMessageBytes(): number {
    return this.#inner.maxMessageBytes;
  }

  /** Calls counted so far: the range to walk over. */
  get counted(): number {
    return this.#counted;
  }

  /** The call that went wrong; undefined when the scenario made fewer. */
  get hit(): CountedCall | undefined {
    return this.#hit;
  }

  async subscribe(spec: Parameters<Transport['subscribe']>[0]): Promise<Subscription> {
    const inner = await this.#inner.subscribe(spec);
    return subscriptionWith(inner, {
      acknowledge: (ids, where) => this.#call('acknowledge', () => inner.acknowledge(ids, within(where))),
      acknowledgeCumulative: (id) => this.#call('acknowledge', () => inner.acknowledgeCumulative(id)),
      redeliver: (ids) => this.#call('redeliver', () => inner.redeliver(ids)),
      // It has no answer that could go wrong; of a process that is gone it reaches nobody.
      ...(inner.negativeAcknowledgeOrdered !== undefined && {
        negativeAcknowledgeOrdered: (nacked, returned) => {
          if (!this.#gone) inner.negativeAcknowledgeOrdered?.(nacked, returned);
        },
      }),
    });
  }

  async publisher(topic: string, options?: PublisherRequest): Promise<Publisher> {
    const open = (): Promise<Publisher> => this.#inner.publisher(topic, options);
    // One whose confirmation never came is gone with its connection, and its name is free.
    const inner = await this.#call('publisher', open, (lostOne) => void lostOne.close());
    return {
      topic: inner.topic,
      nextSequenceId: () => inner.nextSequenceId(),
      publish: (message, sequenceId, where) =>
        this.#call('publish', () => inner.publish(message, sequenceId, within(where))),
      close: () => inner.close(),
    };
  }

  async newTransaction(options?: TransactionOptions): Promise<Transaction> {
    const begin = this.#inner.newTransaction?.bind(this.#inner);
    if (begin === undefined) throw new Error(`${this.#inner.name} has no transactions`);
    const inner = await this.#call('begin', () => begin(options));
    return new FaultyTransaction(inner, (call, run) => this.#call(call, run));
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  /** `store` with the calls of these methods counted too: they go wrong as those to the broker do. */
  store<S extends object>(store: S, methods: readonly (keyof S)[]): S {
    return new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        const method = (...args: unknown[]): unknown => (value as (...given: unknown[]) => unknown).apply(target, args);
        if (!(methods as readonly PropertyKey[]).includes(name)) return method;
        return (...args: unknown[]) => this.#call('store', async () => method(...args));
      },
    });
  }

  /** @param forget what was done and nobody will ever hear of. */
  #call<T>(call: CountedCall, run: () => Promise<T>, forget?: (done: T) => void): Promise<T> {
    // Of a process that is gone nothing reaches anybody.
    if (this.#gone) return new Promise(() => undefined);
    this.#counted += 1;
    this.#plan.onCall?.(call);
    if (this.#counted !== this.#plan.at) return run();
    this.#hit = call;
    return this.#fail(run, forget);
  }

  #end(): void {
    this.#gone = true;
    this.#plan.onGone?.();
  }

  #fail<T>(run: () => Promise<T>, forget: (done: T) => void = () => undefined): Promise<T> {
    const never = new Promise<T>(() => undefined);
    switch (this.#plan.fault) {
      case 'throws':
        throw lost({ sent: false });
      case 'rejects-late':
        return new Promise((_, reject) => this.#plan.clock.setTimer(LATE_MS, () => reject(lost())));
      case 'answer-lost':
        return run().then((done) => {
          forget(done);
          throw lost();
        });
      case 'hangs':
        return never;
      case 'hangs-done':
        return run().then((done) => {
          forget(done);
          return never;
        });
      case 'process-gone':
        this.#end();
        return never;
      case 'process-gone-done':
        return run().then(() => {
          this.#end();
          return never;
        });
    }
  }
}

/** The transport takes its own transactions only. */
class FaultyTransaction implements Transaction {
  readonly inner: Transaction;
  readonly #call: (call: 'commit' | 'abort', run: () => Promise<void>) => Promise<void>;

  constructor(inner: Transaction, call: (call: 'commit' | 'abort', run: () => Promise<void>) => Promise<void>) {
    this.inner = inner;
    this.#call = call;
  }

  get id(): Transaction['id'] {
    return this.inner.id;
  }
  get state(): Transaction['state'] {
    return this.inner.state;
  }

  commit(): Promise<void> {
    return this.#call('commit', () => this.inner.commit());
  }

  abort(): Promise<void> {
    return this.#call('abort', () => this.inner.abort());
  }
}

function within(where: InTransaction | undefined): InTransaction | undefined {
  return where?.transaction instanceof FaultyTransaction ? { transaction: where.transaction.inner } : where;
}

function lost({ sent }: { readonly sent: boolean } = { sent: true }): TransportError {
  return new TransportError('CONNECTION_LOST', 'the connection was lost on purpose', { retriable: true, sent });
}
