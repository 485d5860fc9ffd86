// The coordinators of a cluster: how many there are, where each is now, and what they are asked for. A coordinator moves
// like a topic does: whoever does not find it where it was looks it up again.
import { TransportError } from '../../core/errors.js';
import type { TransactionId } from '../../core/transaction-id.js';
import { transactionText } from '../../core/transaction-id.js';
import type { Connection } from './connection.js';
import type { Command } from './protocol/commands.js';
import { repeatPassing } from './repeat-passing.js';
import { connectionLost } from './server-errors.js';
import { OpenTransaction } from '../../transactions/open-transaction.js';
import type { CoordinatorCalls } from '../../transactions/open-transaction.js';
import { outcomeUnknown, transactionsUnavailable } from '../../transactions/transaction-errors.js';
import type { WireContext } from './wire-context.js';

/** A topic that nobody reads: each of its partitions is served by the broker that has the coordinator of that number. */
const COORDINATOR_TOPIC = 'persistent://pulsar/system/transaction_coordinator_assign';
const ACTIONS = { commit: 0, abort: 1 } as const;

export class TransactionCoordinators implements CoordinatorCalls {
  readonly #context: WireContext;
  #count: number | undefined;
  /** New transactions go to one after the other. */
  #next = 0;
  readonly #connections = new Map<number, Promise<Connection>>();

  constructor(context: WireContext) {
    this.#context = context;
  }

  /** @throws TransportError TRANSACTIONS_UNAVAILABLE; CALL_TIMED_OUT, also when a coordinator has too many of them. */
  async begin(timeoutMs: number, forget: (ended: OpenTransaction) => void): Promise<OpenTransaction> {
    const { clock } = this.#context.options;
    const count = await this.#howMany();
    const tcId = this.#next++ % count;
    let deadlineMs = 0;
    const answer = await this.#ask(tcId, (connection) => {
      // Whether the broker counts from here or from later, here it is over first.
      deadlineMs = clock.now() + timeoutMs;
      return connection.request('NEW_TXN', { tcId, txnTtlSeconds: timeoutMs }, `coordinator ${tcId}`);
    });
    if (answer.name !== 'NEW_TXN_RESPONSE') throw unexpected('NEW_TXN', answer);
    const { txnidMostBits: mostBits = 0n, txnidLeastBits: leastBits = 0n } = answer.body;
    const id = { mostBits, leastBits };
    return new OpenTransaction({ id, coordinator: this, place: this.#context, clock, timeoutMs, deadlineMs, forget });
  }

  async addPartition(id: TransactionId, topic: string): Promise<void> {
    const body = { ...bitsOf(id), partitions: [topic] };
    const about = `${topic} to transaction ${transactionText(id)}`;
    await this.#ask(coordinatorOf(id), (connection) => connection.request('ADD_PARTITION_TO_TXN', body, about));
  }

  async addSubscription(id: TransactionId, topic: string, subscription: string): Promise<void> {
    const body = { ...bitsOf(id), subscription: [{ topic, subscription }] };
    const about = `${subscription} on ${topic} to transaction ${transactionText(id)}`;
    await this.#ask(coordinatorOf(id), (connection) => connection.request('ADD_SUBSCRIPTION_TO_TXN', body, about));
  }

  /**
   * That a coordinator does not know the transaction means that it was aborted, unless an earlier request may have
   * committed it: coordinators forget what has ended (T-04).
   */
  async commit(id: TransactionId): Promise<void> {
    const earlier = { mayHaveBeen: false };
    try {
      await this.#ask(coordinatorOf(id), async (connection) => {
        try {
          await this.#requestEnd(connection, id, 'commit');
        } catch (error) {
          if (isPassing(error) && error.code !== 'TRANSACTIONS_UNAVAILABLE') earlier.mayHaveBeen = true;
          throw error;
        }
        return undefined;
      });
    } catch (error) {
      throw earlier.mayHaveBeen ? outcomeUnknown(id, error) : error;
    }
  }

  /** Of a transaction that was never to be committed: when it is not known any more, it is aborted. */
  async abort(id: TransactionId, once = false): Promise<void> {
    const end = (connection: Connection): Promise<unknown> => this.#requestEnd(connection, id, 'abort');
    const aborting = once ? this.#askOnce(coordinatorOf(id), end) : this.#ask(coordinatorOf(id), end);
    await aborting.catch((error: unknown) => {
      if (!(error instanceof TransportError && error.code === 'TRANSACTION_ENDED')) throw error;
    });
  }

  #requestEnd(connection: Connection, id: TransactionId, action: keyof typeof ACTIONS): Promise<Command> {
    const body = { ...bitsOf(id), txnAction: ACTIONS[action] };
    return connection.request('END_TXN', body, `transaction ${transactionText(id)}, ${action}`);
  }

  async #howMany(): Promise<number> {
    if (this.#count !== undefined) return this.#count;
    const { lookup, options } = this.#context;
    const count = await repeatPassing(() => lookup.partitionsNow(COORDINATOR_TOPIC), options).catch(asUnavailable);
    if (count === 0) throw transactionsUnavailable('the cluster has no coordinators: they are switched off there');
    this.#count = count;
    return count;
  }

  #ask<T>(tcId: number, request: (connection: Connection) => Promise<T>): Promise<T> {
    return repeatPassing(() => this.#askOnce(tcId, request), this.#context.options);
  }

  async #askOnce<T>(tcId: number, request: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.#connectionTo(tcId);
    try {
      return await request(connection);
    } catch (error) {
      // It may be elsewhere by now.
      if (isPassing(error)) this.#connections.delete(tcId);
      throw error;
    }
  }

  async #connectionTo(tcId: number): Promise<Connection> {
    const known = this.#connections.get(tcId);
    if (known !== undefined) {
      const connection = await known;
      if (connection.isOpen) return connection;
      if (this.#connections.get(tcId) === known) this.#connections.delete(tcId);
      return this.#connectionTo(tcId);
    }
    const connecting = this.#connect(tcId).catch((error: unknown) => {
      this.#connections.delete(tcId);
      throw error;
    });
    this.#connections.set(tcId, connecting);
    return connecting;
  }

  /** A broker whose coordinator was not asked for by a client does not have to load it. */
  async #connect(tcId: number): Promise<Connection> {
    const connection = await this.#context.lookup.connectionFor(`${COORDINATOR_TOPIC}-partition-${tcId}`);
    await connection.request('TC_CLIENT_CONNECT_REQUEST', { tcId }, `coordinator ${tcId}`).catch(asUnavailable);
    return connection;
  }
}

function bitsOf({ mostBits, leastBits }: TransactionId) {
  return { txnidMostBits: mostBits, txnidLeastBits: leastBits };
}

function coordinatorOf({ mostBits }: TransactionId): number {
  return Number(BigInt.asUintN(64, mostBits));
}

function isPassing(error: unknown): error is TransportError {
  return error instanceof TransportError && error.retriable;
}

/** What a cluster without transactions answers, or one in which this client may not use them. */
function asUnavailable(error: unknown): never {
  const isRefusal = error instanceof TransportError && ['TOPIC_NOT_FOUND', 'NOT_ALLOWED'].includes(error.code);
  throw isRefusal ? transactionsUnavailable(error.message, error) : error;
}

function unexpected(what: string, { name }: Command): TransportError {
  return connectionLost(`${what}: the broker answered ${name}`);
}
