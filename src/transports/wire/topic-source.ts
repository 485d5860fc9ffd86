// Which topics a subscription has: those it names, with the partitions they get while it runs, or those of a namespace
// that match its pattern.
import { partitionName, partitionOf } from '../../core/topic-name.js';
import { toError } from '../../core/errors.js';
import { attachable, listedPartitions } from './listed-topics.js';
import { PartitionGrowth } from './partition-growth.js';
import { TopicList } from './topic-list.js';
import type { TopicPattern } from '../../core/topic-pattern.js';
import type { WireContext } from './wire-context.js';

export interface TopicSource {
  /** For logs. */
  readonly text: string;
  /**
   * The topics now, partitions one by one. @param changed is called with all of them whenever there are others.
   * @throws TransportError
   */
  open(changed: (topics: readonly string[]) => void): Promise<readonly string[]>;
  /** Nothing is told any more. */
  close(): void;
}

export interface Intervals {
  /** Milliseconds; 0 for never. */
  readonly partitionsUpdateMs: number;
  readonly patternUpdateMs: number;
}

/** The topics to attach to: the topic itself, or each of its partitions. */
export async function partitionsOf(context: WireContext, topic: string): Promise<string[]> {
  if (partitionOf(topic) >= 0) return [topic];
  return partitionNames(topic, await context.lookup.partitions(topic));
}

export class NamedTopics implements TopicSource {
  readonly #context: WireContext;
  readonly #names: readonly string[];
  readonly #intervals: Intervals;
  readonly #growth: PartitionGrowth[] = [];
  readonly #topics = new Set<string>();
  #closed = false;

  /** @param names full; a partitioned topic without its partitions, or single partitions. */
  constructor(context: WireContext, names: readonly string[], intervals: Intervals) {
    this.#context = context;
    this.#names = [...new Set(names)];
    this.#intervals = intervals;
  }

  get text(): string {
    return this.#names.join(', ');
  }

  async open(changed: (topics: readonly string[]) => void): Promise<readonly string[]> {
    const found = await Promise.all(this.#names.map((name) => partitionsOf(this.#context, name)));
    for (const topic of found.flat()) this.#topics.add(topic);
    if (this.#closed) return [...this.#topics];
    for (const [index, name] of this.#names.entries()) {
      const count = (found[index] ?? []).filter((topic) => topic !== name).length;
      if (count > 0) this.#growth.push(this.#watch(name, count, changed));
    }
    return [...this.#topics];
  }

  close(): void {
    this.#closed = true;
    for (const growth of this.#growth) growth.close();
  }

  #watch(topic: string, count: number, changed: (topics: readonly string[]) => void): PartitionGrowth {
    const grew = (from: number, to: number): Promise<void> => {
      for (const name of partitionNames(topic, to).slice(from)) this.#topics.add(name);
      changed([...this.#topics]);
      return Promise.resolve();
    };
    return new PartitionGrowth(this.#context, { topic, count, everyMs: this.#intervals.partitionsUpdateMs, grew });
  }
}

export class PatternTopics implements TopicSource {
  readonly #context: WireContext;
  readonly #pattern: TopicPattern;
  readonly #list: TopicList;
  /** Partitions of each partitioned topic, and of how many listed ones that was the answer. */
  #counts = new Map<string, { readonly listed: number; readonly count: number }>();
  #changed: (topics: readonly string[]) => void = () => undefined;
  /** One list after the other: a late answer about partitions must not bring back an older one. */
  #line: Promise<unknown> = Promise.resolve();

  constructor(context: WireContext, pattern: TopicPattern, { patternUpdateMs }: Intervals) {
    this.#context = context;
    this.#pattern = pattern;
    this.#list = new TopicList(context, pattern, patternUpdateMs, (listed) => void this.#told(listed));
  }

  get text(): string {
    return `pattern ${this.#pattern.text}`;
  }

  async open(changed: (topics: readonly string[]) => void): Promise<readonly string[]> {
    const topics = await this.#attachable(await this.#list.open());
    this.#changed = changed;
    // What came or went meanwhile was told to nobody.
    void this.#told(this.#list.topics);
    return topics;
  }

  close(): void {
    this.#changed = () => undefined;
    this.#list.close();
  }

  #told(listed: ReadonlySet<string>): Promise<unknown> {
    const snapshot = [...listed];
    this.#line = this.#line.then(async () => this.#changed(await this.#attachable(snapshot)));
    return this.#line;
  }

  async #attachable(listed: Iterable<string>): Promise<readonly string[]> {
    const counts = new Map<string, { readonly listed: number; readonly count: number }>();
    await Promise.all(
      [...listedPartitions(listed)].map(async ([base, now]) => {
        const known = this.#counts.get(base);
        const count = known?.listed === now ? known.count : await this.#partitions(base, known?.count ?? 0);
        counts.set(base, { listed: count < now ? -1 : now, count });
      }),
    );
    this.#counts = counts;
    return attachable(listed, new Map([...counts].map(([base, { count }]) => [base, count])));
  }

  /** Where the broker does not tell, what is listed counts, and the next list asks again. */
  async #partitions(topic: string, known: number): Promise<number> {
    try {
      return await this.#context.lookup.partitionsNow(topic);
    } catch (error) {
      this.#context.options.logger?.debug(`partitions of ${topic} are not known: ${toError(error).message}`);
      return known;
    }
  }
}

export function partitionNames(topic: string, count: number): string[] {
  return count === 0 ? [topic] : Array.from({ length: count }, (_, index) => partitionName(topic, index));
}
