// The transactions of one broker: the coordinator, and what keeps messages and acknowledgements until it is known how a
// transaction ended, on one metadata store. Before the first transaction nothing is opened, watched or timed.
import { toError } from '../../core/errors.js';
import { OptionChecker } from '../../core/options.js';
import type { TransactionId } from '../../core/transaction-id.js';
import type { Clock } from '../../ports/clock.js';
import type { MetadataStore } from '../../ports/metadata-store.js';
import type { CoordinatorOptions } from './coordinator-options.js';
import { resolveCoordinatorOptions } from './coordinator-options.js';
import { Departures } from './departures.js';
import { removeLeftovers } from './leftovers.js';
import type { KeptTopic } from './leftovers.js';
import { metadataPendingAckLogs } from './pending-ack-log.js';
import { DispatchingPendingAckStoreProvider } from './pending-ack-providers.js';
import type { PendingAckOwner, PendingAckStoreProvider } from './pending-ack-store.js';
import { TransactionBuffers } from './topic-transactions.js';
import { TransactionCoordinator } from './transaction-coordinator.js';
import type { NewTransaction, TransactionAction } from './transaction-coordinator.js';
import { storeFailed } from './transaction-errors.js';
import { TxnMetadataStore } from './txn-metadata-store.js';
import { segmentKey, subscriptionKey } from './txn-paths.js';

export interface BrokerTransactionOptions extends CoordinatorOptions {
  /** Where all that is to be known of transactions is kept. Opened here, and closed with the broker. */
  readonly store: MetadataStore;
  /** Told what failed and will be tried again. @default nobody */
  readonly onFailed?: ((error: Error) => void) | undefined;
}

const STORE_METHODS = ['open', 'get', 'put', 'delete', 'append', 'children', 'scanIndex', 'watch', 'close'] as const;

export class BrokerTransactions {
  readonly pendingAcks: PendingAckStoreProvider;
  readonly buffers: TransactionBuffers;
  readonly #options: BrokerTransactionOptions;
  readonly #records: TxnMetadataStore;
  readonly #coordinator: TransactionCoordinator;
  readonly #departures: Departures;
  readonly #provider: PendingAckStoreProvider;
  readonly #report: (error: unknown) => void;
  /** Where something was left by an earlier broker; keys of topics and of subscriptions. */
  readonly #left = new Set<string>();
  #opening: Promise<void> | undefined;

  /** @throws ConfigurationError */
  constructor(options: BrokerTransactionOptions, clock: Clock) {
    const { store, onFailed, ...coordinator } = checked(options);
    const report = (error: unknown): void => onFailed?.(toError(error));
    this.#report = report;
    this.#options = options;
    this.#records = new TxnMetadataStore(store);
    this.#coordinator = new TransactionCoordinator({
      ...{ store: this.#records, clock, options: coordinator, onSweepFailed: report },
    });
    const places = { records: this.#records, report };
    this.buffers = new TransactionBuffers(places, (topic) => this.#isLeft(() => segmentKey(topic)));
    this.#departures = new Departures(report);
    this.#provider = new DispatchingPendingAckStoreProvider({ ...places, logs: metadataPendingAckLogs(store) });
    this.pendingAcks = this.#lazy(this.#provider);
  }

  /** Whose transactions they are: brokers that share it have the same ones. */
  get place(): object {
    return this.#options.store;
  }

  /**
   * What earlier brokers left is looked after from now on. Comes before the first transaction by itself; a broker whose topics
   * outlive it calls it before it loads them. More calls than one are allowed, also after one that failed.
   * @param kept by a broker that has the store for itself: everything that it keeps. Then whoever had a transaction that is
   *   open is gone, so it is aborted, and records of what is not kept are removed.
   * @throws what the store throws.
   */
  open(kept?: readonly KeptTopic[]): Promise<void> {
    this.#opening ??= this.#open(kept).catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  /** @throws TransportError as the coordinator; what the store throws. */
  async begin(wanted: NewTransaction): Promise<TransactionId> {
    await this.open().catch(asStoreFailed);
    return this.#coordinator.newTransaction(wanted);
  }

  /** @throws TransportError as the coordinator; what the store throws. */
  async end(id: TransactionId, action: TransactionAction): Promise<void> {
    await this.open().catch(asStoreFailed);
    await this.#coordinator.end(id, action);
  }

  /** Once topics and subscriptions are closed. What is open stays open. More calls than one are allowed. */
  async close(): Promise<void> {
    await this.#opening?.catch(() => undefined);
    await this.#coordinator.close();
    await this.buffers.closed();
    await this.#departures.allLeft();
    await this.#options.store.close();
  }

  async #open(kept: readonly KeptTopic[] | undefined): Promise<void> {
    await this.#options.store.open();
    const left = [await this.#records.writtenSegments(), await this.#records.acknowledgingSubscriptions()];
    for (const key of left.flat()) this.#left.add(key);
    // What fails is left to its time, and to the next broker: a disk that is full must not keep the topics closed.
    if (kept !== undefined) await this.#clearUp(kept).catch(this.#report);
    await this.#coordinator.start();
  }

  async #clearUp(kept: readonly KeptTopic[]): Promise<void> {
    await this.#coordinator.abortOpen();
    await removeLeftovers({ records: this.#records, provider: this.#provider, left: this.#left }, kept);
  }

  #isLeft(keyOf: () => string): boolean {
    return this.#left.size > 0 && this.#left.has(keyOf());
  }

  /** What was never used in a transaction is not opened. */
  #lazy(provider: PendingAckStoreProvider): PendingAckStoreProvider {
    const keyOf = ({ topic, subscription }: PendingAckOwner): string => subscriptionKey(topic, subscription);
    return {
      mayHold: (owner) => this.#isLeft(() => keyOf(owner)),
      open: async (owner) => {
        await this.open();
        await this.#departures.left(keyOf(owner));
        return provider.open(owner);
      },
      leave: (owner, removed) => this.#departures.leave(keyOf(owner), removed),
    };
  }
}

/** @throws ConfigurationError listing every problem. */
function checked(options: BrokerTransactionOptions): BrokerTransactionOptions {
  const check = new OptionChecker('transactions');
  if (check.object('options', options)) {
    check.required(options, { store: 'a MetadataStore' });
    check.methods('store', options.store, STORE_METHODS, 'a MetadataStore');
    check.function('onFailed', options.onFailed);
  }
  check.throwIfAny();
  const { store, onFailed, ...coordinator } = options;
  return { store, onFailed, ...resolveCoordinatorOptions(coordinator) };
}

function asStoreFailed(error: unknown): never {
  throw storeFailed(error);
}
