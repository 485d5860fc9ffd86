// One producer as its topic sees it: its name, how it shares the topic, and whether it still may publish.
import type { AccessMode } from '../core/access-mode.js';

export interface ProducerFacts {
  /** Unique among the live producers of the topic (S-45). */
  readonly name: string;
  readonly accessMode: AccessMode;
  /** The broker closed it and it may come again. Called by the broker's own turn, never inside a call that a client makes. */
  readonly disconnected: () => void;
}

/**
 * `waiting`: in line until it has the topic for itself. `disconnected`: closed by the broker, it may come again.
 * `fenced`: shut out for good by a newer one.
 */
export type ProducerState = 'attached' | 'waiting' | 'disconnected' | 'fenced' | 'closed';

export class BrokerProducer {
  readonly name: string;
  readonly accessMode: AccessMode;
  readonly #disconnected: () => void;
  state: ProducerState = 'attached';
  #admitted: Promise<void> | undefined;
  #admit: () => void = () => undefined;

  constructor({ name, accessMode, disconnected }: ProducerFacts) {
    this.name = name;
    this.accessMode = accessMode;
    this.#disconnected = disconnected;
  }

  /** Settles when the wait is over, whatever its end: `state` tells. Undefined for one that never waited. */
  get waited(): Promise<void> | undefined {
    return this.#admitted;
  }

  /** It goes in line. */
  wait(): void {
    this.state = 'waiting';
    this.#admitted = new Promise((resolve) => (this.#admit = resolve));
  }

  /** Its wait is over, or its time on the topic. Who is disconnected is told by `tellDisconnected`. */
  become(state: ProducerState): void {
    this.state = state;
    if (state !== 'disconnected') this.#admit();
  }

  /** In the broker's turn, in the order in which they had the topic or waited for it: so they come again. */
  tellDisconnected(): void {
    this.#admit();
    this.#disconnected();
  }
}
