// All lanes of one leader: which row goes to which, what is published and not deleted yet, and which topics have enough.
import { outboxLane } from '../../core/outbox-record.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { ClaimedRow } from '../../ports/outbox-store.js';
import { OutboxLane } from './outbox-lane.js';
import type { OutboxSender } from './outbox-sender.js';

/** Rows of one topic in memory: a topic that takes nothing must not fill it, nor keep the others from being claimed. */
const MAX_ROWS_OF_TOPIC = 1_024;

export interface OutboxLanesParts {
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  readonly sender: OutboxSender;
  readonly store: { readonly name: string };
  /** Rows are published or refused, which is to be written down. */
  readonly wake: () => void;
}

export interface Refusal {
  readonly row: ClaimedRow;
  readonly reason: string;
  /** To be called as soon as it is in the table, before anything else is claimed. */
  written(): void;
}

export class OutboxLanes {
  readonly #parts: OutboxLanesParts;
  readonly #lanes = new Map<string, OutboxLane>();
  readonly #sizes = new Map<string, number>();
  #published: number[] = [];
  #refusals: Refusal[] = [];
  #failure: { readonly topic: string; readonly message: string } | undefined;

  constructor(parts: OutboxLanesParts) {
    this.#parts = parts;
  }

  /** Rows that are not published yet. */
  get size(): number {
    return [...this.#sizes.values()].reduce((sum, size) => sum + size, 0);
  }

  /** Topics of which no more is to be claimed now. */
  get fullTopics(): readonly string[] {
    return [...this.#sizes].filter(([, size]) => size >= MAX_ROWS_OF_TOPIC).map(([topic]) => topic);
  }

  /** The last failure of a publish, while nothing was published to that topic since. */
  get failure(): string | undefined {
    return this.#failure?.message;
  }

  add(rows: readonly ClaimedRow[]): void {
    for (const row of rows) {
      this.#count(row.topic, 1);
      this.#laneOf(row).add(row);
    }
  }

  /** Ids to delete, each once. */
  takePublished(): readonly number[] {
    const published = this.#published;
    this.#published = [];
    return published;
  }

  /** To be written down, each once. Their lanes stand still until then. */
  takeRefusals(): readonly Refusal[] {
    const refusals = this.#refusals;
    this.#refusals = [];
    return refusals;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#lanes.values()].map((lane) => lane.stop()));
  }

  #laneOf(row: ClaimedRow): OutboxLane {
    const key = `${outboxLane(row)} ${row.topic}`;
    const known = this.#lanes.get(key);
    if (known !== undefined) return known;
    const { clock, random, sender } = this.#parts;
    const lane: OutboxLane = new OutboxLane({
      clock,
      random,
      send: (sent) => sender.send(sent),
      published: (done) => this.#done(done),
      refused: (refused, reason) => this.#refused(lane, refused, reason),
      failed: (failed, error, againInMs) => this.#failed(failed, error, againInMs),
    });
    this.#lanes.set(key, lane);
    return lane;
  }

  #done({ id, topic }: ClaimedRow): void {
    this.#published.push(id);
    this.#count(topic, -1);
    if (this.#failure?.topic === topic) this.#failure = undefined;
    this.#parts.wake();
  }

  #refused(lane: OutboxLane, row: ClaimedRow, reason: string): void {
    const { logger, store, wake } = this.#parts;
    const fields = { store: store.name, id: row.id, topic: row.topic, key: row.orderedBy, reason };
    const written = (): void => {
      this.#count(row.topic, -lane.drop(row));
      logger.error('a message of the outbox was refused for good; it and its key wait for release or skip', fields);
    };
    this.#refusals.push({ row, reason, written });
    wake();
  }

  #failed(row: ClaimedRow, error: Error, againInMs: number): void {
    const { logger, store } = this.#parts;
    this.#failure = { topic: row.topic, message: `publishing to ${row.topic} fails: ${error.message}` };
    const fields = { store: store.name, id: row.id, topic: row.topic, error, againInMs };
    logger.warn('a message of the outbox was not published; it is tried again', fields);
  }

  #count(topic: string, change: number): void {
    this.#sizes.set(topic, (this.#sizes.get(topic) ?? 0) + change);
  }
}
