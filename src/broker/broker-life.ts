// When a broker may be used: at once where nothing is kept beyond memory, else from when its store has given back what an
// earlier broker kept, until it is closed.
import { PulseworkError, TransportError } from '../core/errors.js';
import type { BrokerChange, BrokerStore, DurableBrokerStore, Stored, StoredBroker } from '../ports/broker-store.js';
import { isDurable } from './broker-store.js';

export interface BrokerLifeSteps {
  /** Behind the store and before `restore`. */
  readonly open: (stored: StoredBroker) => Promise<void>;
  /** Called once, before anything else is done to the broker. */
  readonly restore: (stored: StoredBroker) => void;
  /** Before the store is closed, also where there is none. */
  readonly close: () => Promise<void>;
}

export class BrokerLife {
  readonly #store: BrokerStore;
  readonly #durable: DurableBrokerStore | undefined;
  readonly #steps: BrokerLifeSteps;
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #isOpen: boolean;

  constructor(store: BrokerStore, steps: BrokerLifeSteps) {
    this.#store = store;
    this.#durable = isDurable(store) ? store : undefined;
    this.#steps = steps;
    this.#isOpen = this.#durable === undefined;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** More calls than one are allowed, also after one that failed. */
  async open(): Promise<void> {
    if (this.#closing !== undefined) throw closed();
    this.#opening ??= this.#open();
    try {
      await this.#opening;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }

  /** @throws PulseworkError ILLEGAL_STATE; TransportError ALREADY_CLOSED. */
  check(): void {
    if (this.#isOpen) return;
    if (this.#closing !== undefined) throw closed();
    const store = this.#durable?.name ?? '';
    throw new PulseworkError('ILLEGAL_STATE', `the broker on ${store} is not open; it needs await broker.open() first`);
  }

  changed(change: BrokerChange): void {
    this.#store.changed?.(change);
  }

  written(): Stored {
    return this.#durable?.written();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #open(): Promise<void> {
    if (this.#durable === undefined) return;
    const stored = await this.#durable.open();
    await this.#steps.open(stored);
    if (this.#closing !== undefined) throw closed();
    this.#steps.restore(stored);
    this.#isOpen = true;
  }

  async #close(): Promise<void> {
    // What is in memory alone may still be looked at.
    if (this.#durable !== undefined) this.#isOpen = false;
    await this.#opening?.catch(() => undefined);
    await this.#steps.close();
    await this.#durable?.close();
  }
}

function closed(): TransportError {
  return new TransportError('ALREADY_CLOSED', 'the embedded broker is closed', { retriable: false });
}
