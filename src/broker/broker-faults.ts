// Faults on purpose: which occasion goes wrong, and how, by the draws of a seed. What a fault does to a connection is
// ConsumerConnection's; a broker without injections asks nothing but whether there are any.
import { TransportError } from '../core/errors.js';
import { withoutPartition } from '../core/topic-name.js';
import type { FaultName, FaultOptions, ResolvedFault, ResolvedFaults } from './fault-options.js';
import { FAULT_NAMES, resolveFaults } from './fault-options.js';

/** What `EmbeddedBroker.inject` returns. */
export interface InjectedFaults {
  /** How often each fault has happened. */
  readonly counts: Readonly<Record<FaultName, number>>;
  /** Nothing more goes wrong by this injection; what is late comes, and a silent connection is given up, at its time. */
  end(): void;
}

/** What becomes of one delivery. */
export interface DeliveryFaults {
  /** Milliseconds until its connection is given up; undefined: it is not lost. */
  readonly silentMs: number | undefined;
  readonly delayMs: number;
  /** Milliseconds until the copy of each duplicate. */
  readonly copiesAfterMs: readonly number[];
  readonly disconnects: boolean;
}

export interface ConnectionPlace {
  /** Full name, with its partition. */
  readonly topic: string;
  readonly subscription: string;
}

export class BrokerFaults {
  #injections: readonly Injection[] = [];

  /** Whether nothing goes wrong at present. */
  get none(): boolean {
    return this.#injections.length === 0;
  }

  /** @param fullName of a topic. @throws ConfigurationError */
  inject(options: FaultOptions, fullName: (name: string) => string): InjectedFaults {
    const resolved = resolveFaults(options);
    const injection = new Injection({ ...resolved, topics: resolved.topics?.map(fullName) });
    this.#injections = [...this.#injections, injection];
    return {
      counts: injection.counts,
      end: () => {
        this.#injections = this.#injections.filter((other) => other !== injection);
      },
    };
  }

  /** Undefined where nothing is to happen. */
  ofDelivery({ topic, subscription }: ConnectionPlace): DeliveryFaults | undefined {
    let delayMs = 0;
    let disconnects = false;
    const copiesAfterMs: number[] = [];
    for (const injection of this.#injections) {
      if (!injection.concerns(topic, subscription)) continue;
      const silentMs = injection.draw('drop');
      if (silentMs !== undefined) return { silentMs, delayMs: 0, copiesAfterMs: [], disconnects: false };
      delayMs += injection.draw('delay') ?? 0;
      const copy = injection.draw('duplicate');
      if (copy !== undefined) copiesAfterMs.push(copy);
      if (!disconnects) disconnects = injection.draw('disconnect') !== undefined;
    }
    if (delayMs === 0 && !disconnects && copiesAfterMs.length === 0) return undefined;
    return { silentMs: undefined, delayMs, copiesAfterMs, disconnects };
  }

  /** Milliseconds that the receipt of an acknowledgement is late. */
  ofReceipt({ topic, subscription }: ConnectionPlace): number {
    let lateMs = 0;
    for (const injection of this.#injections)
      if (injection.concerns(topic, subscription)) lateMs += injection.draw('slowAcknowledge') ?? 0;
    return lateMs;
  }

  /** When a publish fails: before the message is stored or after. @param topic full name, with its partition or without */
  ofPublish(topic: string): 'before' | 'after' | undefined {
    for (const injection of this.#injections) {
      const when = injection.concerns(topic) ? injection.drawPublish() : undefined;
      if (when !== undefined) return when;
    }
    return undefined;
  }
}

/** The error of everything that is lost on purpose. */
export function lostOnPurpose(what: string): TransportError {
  return new TransportError('CONNECTION_LOST', `${what}: the connection was lost on purpose`, { retriable: true });
}

class Injection {
  readonly counts: Record<FaultName, number>;
  readonly #options: ResolvedFaults;
  readonly #random: () => number;

  constructor(options: ResolvedFaults) {
    this.#options = options;
    this.#random = seeded(options.seed);
    this.counts = Object.fromEntries(FAULT_NAMES.map((name) => [name, 0])) as Record<FaultName, number>;
  }

  /** @param subscription undefined for a publish */
  concerns(topic: string, subscription?: string): boolean {
    const { topics, subscriptions } = this.#options;
    if (topics !== undefined && !topics.includes(topic) && !topics.includes(withoutPartition(topic))) return false;
    return subscription === undefined || subscriptions === undefined || subscriptions.includes(subscription);
  }

  /** The milliseconds of the fault where it happens now; 0 for one without a time. */
  draw(name: FaultName): number | undefined {
    const fault = this.#options.faults.get(name);
    if (fault === undefined || !this.#happens(name, fault)) return undefined;
    const [least, most] = fault.ms;
    return least + Math.floor(this.#random() * (most - least + 1));
  }

  drawPublish(): 'before' | 'after' | undefined {
    const fault = this.#options.faults.get('failPublish');
    if (fault === undefined || !this.#happens('failPublish', fault)) return undefined;
    const stored = fault.stored ?? this.#random() < 0.5;
    return stored ? 'after' : 'before';
  }

  #happens(name: FaultName, { probability, times }: ResolvedFault): boolean {
    if (this.counts[name] >= times || this.#random() >= probability) return false;
    this.counts[name]++;
    return true;
  }
}

/** Mulberry32: small, and the same everywhere. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
