// The topics of a namespace that match a pattern, as they come and go. The broker tells of them where it can; beside that
// it is asked at an interval, which closes every gap: before the watching began, after a lost connection, or where the
// broker does not watch at all.
import { TransportError, toError } from '../../core/errors.js';
import type { Timer } from '../../ports/clock.js';
import { Attachment } from './attachment.js';
import type { Connection, WatcherSide } from './connection.js';
import { withJitter } from './partition-growth.js';
import type { CommandBody } from './protocol/commands.js';
import { alreadyClosed, connectionLost } from './server-errors.js';
import type { PatternDomain, TopicPattern } from '../../core/topic-pattern.js';
import type { WireContext } from './wire-context.js';

const MODE_NUMBERS: Readonly<Record<PatternDomain, number>> = { persistent: 0, 'non-persistent': 1, all: 2 };

export class TopicList implements WatcherSide {
  readonly #context: WireContext;
  readonly #pattern: TopicPattern;
  readonly #everyMs: number;
  readonly #changed: (topics: ReadonlySet<string>) => void;
  readonly #id: number;
  readonly #attachment: Attachment;
  #topics: ReadonlySet<string> = new Set();
  /** Which of the pattern's forms the broker takes: it may refuse a long one. */
  #form = 0;
  /** Of the list that is known, as the broker computed it. */
  #hash: string | undefined;
  /** Updates since the oldest question under way: its answer may be older than they are. */
  #recent: CommandBody<'WATCH_TOPIC_UPDATE'>[] = [];
  #questions = 0;
  /** Over which the broker tells of changes. */
  #connection: Connection | undefined;
  #isOpen = false;
  #timer: Timer | undefined;
  #closed = false;

  /** @param everyMs 0 for never. @param changed is told of each change after `open`. */
  constructor(
    context: WireContext,
    pattern: TopicPattern,
    everyMs: number,
    changed: (topics: ReadonlySet<string>) => void,
  ) {
    this.#context = context;
    this.#pattern = pattern;
    this.#everyMs = everyMs;
    this.#changed = changed;
    this.#id = context.nextId();
    const parts = {
      subject: `list of topics for pattern ${pattern.text}`,
      attach: () => this.#attach(),
      givesUp: () => false,
      failed: () => undefined,
    };
    this.#attachment = new Attachment(parts, context.options);
  }

  /** Full names of those that match, partitions one by one. */
  get topics(): ReadonlySet<string> {
    return this.#topics;
  }

  /** @throws TransportError */
  async open(): Promise<ReadonlySet<string>> {
    await this.#attachment.open();
    this.#isOpen = true;
    this.#schedule();
    return this.#topics;
  }

  topicsChanged(update: CommandBody<'WATCH_TOPIC_UPDATE'>): void {
    if (this.#questions > 0) this.#recent.push(update);
    this.#hash = update.topicsHash;
    this.#take(updated([...this.#topics], update));
  }

  detached(): void {
    this.#connection = undefined;
    this.#attachment.lost();
  }

  close(): void {
    this.#closed = true;
    this.#attachment.close();
    this.#timer?.cancel();
    if (this.#connection !== undefined) this.#leave(this.#connection);
  }

  async #attach(): Promise<void> {
    const connection = await this.#context.pool.toService();
    this.#checkOpen();
    const { domain } = this.#pattern;
    // Brokers watch what is stored, nothing else.
    if (domain === 'persistent' && connection.features.supportsTopicWatchers === true) await this.#watch(connection);
    // Also behind a list that came with the watching: what was made between the two is told by nobody.
    await this.#ask(connection);
    if (this.#isClosed()) this.#leave(connection);
  }

  #isClosed(): boolean {
    return this.#closed;
  }

  #checkOpen(): void {
    if (this.#closed) throw alreadyClosed(`pattern ${this.#pattern.text}`);
  }

  async #watch(connection: Connection): Promise<void> {
    const { namespace, forBroker, text } = this.#pattern;
    const refused = this.#form < forBroker.length;
    connection.watchers.set(this.#id, this);
    for (; this.#form < forBroker.length; this.#form++) {
      const body = { watcherId: this.#id, namespace, topicsPattern: forBroker[this.#form] ?? '' };
      try {
        const answer = await connection.request('WATCH_TOPIC_LIST', body, text);
        if (answer.name !== 'WATCH_TOPIC_LIST_SUCCESS')
          throw connectionLost(`pattern ${text}: answered ${answer.name}`);
        this.#connection = connection;
        this.#hash = answer.body.topicsHash;
        this.#take(answer.body.topics ?? []);
        return;
      } catch (error) {
        if (error instanceof TransportError && error.code === 'NOT_ALLOWED') continue;
        connection.watchers.delete(this.#id);
        throw error;
      }
    }
    connection.watchers.delete(this.#id);
    if (!refused) return;
    this.#context.options.logger?.info(
      `topics for pattern ${text} are looked for at an interval: the broker does not tell`,
    );
  }

  /** The whole list, unless it is the one that is known. @throws TransportError */
  async #ask(connection: Connection): Promise<void> {
    const { namespace, domain, forBroker, text } = this.#pattern;
    const form = forBroker[Math.min(this.#form, forBroker.length - 1)];
    const topicsPattern = domain === 'persistent' ? form : undefined;
    const body = { namespace, mode: MODE_NUMBERS[domain], topicsPattern, topicsHash: this.#hash };
    const before = this.#recent.length;
    this.#questions += 1;
    try {
      const answer = await connection.request('GET_TOPICS_OF_NAMESPACE', body, text);
      if (answer.name !== 'GET_TOPICS_OF_NAMESPACE_RESPONSE') {
        throw connectionLost(`topics for pattern ${text}: the broker answered ${answer.name}`);
      }
      const { topics = [], changed, topicsHash } = answer.body;
      if (changed === false) return;
      const since = this.#recent.slice(before);
      // Of a list that updates came after, the broker has another one than is known here.
      this.#hash = since.length === 0 ? topicsHash : undefined;
      this.#take(since.reduce(updated, topics));
    } finally {
      this.#questions -= 1;
      if (this.#questions === 0) this.#recent = [];
    }
  }

  /** Also what the broker has filtered is filtered here: it ignores a pattern that is too long for it. */
  #take(listed: readonly string[]): void {
    const topics = new Set(listed.filter((topic) => this.#pattern.matches(topic)));
    const same = topics.size === this.#topics.size && [...topics].every((topic) => this.#topics.has(topic));
    this.#topics = topics;
    if (!same && this.#isOpen && !this.#closed) this.#changed(topics);
  }

  #schedule(): void {
    const { clock, random } = this.#context.options;
    if (this.#everyMs === 0 || this.#closed) return;
    this.#timer = clock.setTimer(withJitter(this.#everyMs, random), () => void this.#askAgain());
  }

  async #askAgain(): Promise<void> {
    try {
      await this.#ask(await this.#context.pool.toService());
    } catch (error) {
      const { logger } = this.#context.options;
      logger?.warn(`topics for pattern ${this.#pattern.text} are looked for again later: ${toError(error).message}`);
    }
    this.#schedule();
  }

  #leave(connection: Connection): void {
    if (connection.watchers.get(this.#id) !== this) return;
    connection.watchers.delete(this.#id);
    connection.request('WATCH_TOPIC_LIST_CLOSE', { watcherId: this.#id }, this.#pattern.text).catch(() => undefined);
  }
}

function updated(
  topics: readonly string[],
  { newTopics = [], deletedTopics = [] }: CommandBody<'WATCH_TOPIC_UPDATE'>,
): readonly string[] {
  if (deletedTopics.length === 0) return [...topics, ...newTopics];
  const deleted = new Set(deletedTopics);
  return [...topics.filter((topic) => !deleted.has(topic)), ...newTopics];
}
