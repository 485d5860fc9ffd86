// Which topics a subscription or a publisher has while the broker's come and go: those that are named, with the partitions
// they get meanwhile, or those of a namespace that match a pattern.
import { minutes } from '../../core/options.js';
import { partitionName } from '../../core/topic-name.js';
import type { TopicPattern } from '../../core/topic-pattern.js';
import type { Timer } from '../../ports/clock.js';
import type { EmbeddedBroker } from '../../broker/embedded-broker.js';

/** As Pulsar's clients: autoUpdatePartitionsInterval (S-43). */
const PARTITIONS_UPDATE_MS = minutes(1);

export interface TopicSource {
  /** Full names now, partitions one by one. */
  topics(): readonly string[];
  /** Whether to connect again: a topic that is gone must not be made anew by who only looks for topics. */
  wants(topic: string): boolean;
  /** Calls `changed`, never inside a call that a client makes, when there are others. */
  follow(changed: () => void): void;
  close(): void;
}

/** Partitions never become fewer here: who reads one goes on when its topic was deleted, and so makes it again. */
export class NamedTopics implements TopicSource {
  readonly #broker: EmbeddedBroker;
  readonly #sinceMs: number;
  /** By full name, without a partition unless one was named: how many partitions are known; 0 for none. */
  readonly #counts = new Map<string, number>();
  #changed: () => void = () => undefined;
  #unwatch: (() => void) | undefined;
  #timer: Timer | undefined;

  /** Topics that do not exist are created. @throws TransportError */
  constructor(broker: EmbeddedBroker, names: readonly string[]) {
    this.#broker = broker;
    this.#sinceMs = broker.clock.now();
    for (const name of names) {
      broker.partitionsOf(name);
      this.#counts.set(broker.fullName(name), broker.partitionCount(name));
    }
  }

  topics(): readonly string[] {
    return [...this.#counts].flatMap(([name, count]) =>
      count === 0 ? [name] : Array.from({ length: count }, (_, index) => partitionName(name, index)),
    );
  }

  wants(): boolean {
    return true;
  }

  follow(changed: () => void): void {
    this.#changed = changed;
    const isPartitioned = [...this.#counts.values()].some((count) => count > 0);
    if (isPartitioned) this.#unwatch = this.#broker.watchTopics(() => this.#lookLater());
  }

  close(): void {
    this.#unwatch?.();
    this.#timer?.cancel();
  }

  /**
   * Pulsar's clients look every 60 s. Here the broker says that there is something new, and the next of those looks is the
   * only timer: a program that waits for nothing else may end, and virtual time may stand still.
   */
  #lookLater(): void {
    if (this.#timer !== undefined || ![...this.#counts.keys()].some((name) => this.#hasGrown(name))) return;
    const { clock } = this.#broker;
    const passedMs = (clock.now() - this.#sinceMs) % PARTITIONS_UPDATE_MS;
    this.#timer = clock.setTimer(PARTITIONS_UPDATE_MS - passedMs, () => this.#look());
  }

  #look(): void {
    this.#timer = undefined;
    for (const name of this.#counts.keys()) {
      if (this.#hasGrown(name)) this.#counts.set(name, this.#broker.partitionCount(name));
    }
    this.#changed();
  }

  #hasGrown(name: string): boolean {
    const known = this.#counts.get(name) ?? 0;
    return known > 0 && this.#broker.partitionCount(name) > known;
  }
}

/** Told by the broker, as Pulsar's watcher does: within its next turn, new ones and deleted ones (S-42). */
export class PatternTopics implements TopicSource {
  readonly #broker: EmbeddedBroker;
  readonly #pattern: TopicPattern;
  #unwatch: (() => void) | undefined;

  constructor(broker: EmbeddedBroker, pattern: TopicPattern) {
    this.#broker = broker;
    this.#pattern = pattern;
  }

  topics(): readonly string[] {
    return this.#broker.topics().filter((topic) => this.#pattern.matches(topic));
  }

  wants(topic: string): boolean {
    return this.#broker.hasTopic(topic);
  }

  follow(changed: () => void): void {
    this.#unwatch = this.#broker.watchTopics((names) => {
      if (names.some((name) => this.#pattern.matches(name))) changed();
    });
  }

  close(): void {
    this.#unwatch?.();
  }
}
