// One topic, or one partition of a partitioned topic: its log and its subscriptions.
import type { MessageId } from '../core/message-id.js';
import type { InitialPosition } from '../core/subscription-spec.js';
import { partitionOf } from '../core/topic-name.js';
import type { Stored } from './broker-store.js';
import type { Entry } from './entry.js';
import { TopicLog } from './topic-log.js';
import type { TopicFacts } from './topic-subscription.js';
import { TopicSubscription } from './topic-subscription.js';

export class BrokerTopic {
  readonly name: string;
  readonly partition: number;
  readonly log: TopicLog;
  readonly #facts: TopicFacts;
  readonly #subscriptions = new Map<string, TopicSubscription>();
  #messagesIn = 0;

  constructor(facts: Omit<TopicFacts, 'log' | 'passed'>, nextLedgerId: () => number) {
    const { name, options } = facts;
    this.name = name;
    this.partition = partitionOf(name);
    this.log = new TopicLog({ entries: options.maxLedgerEntries, bytes: options.maxLedgerBytes }, nextLedgerId);
    this.#facts = { ...facts, log: this.log, passed: () => this.#trim() };
  }

  get subscriptions(): ReadonlyMap<string, TopicSubscription> {
    return this.#subscriptions;
  }

  /** Messages stored since the topic exists. */
  get messagesIn(): number {
    return this.#messagesIn;
  }

  /** Appends an entry. It is readable, and its receipt given, once the store has it. */
  append(entry: Entry): { readonly id: MessageId; readonly stored: Stored } {
    const position = this.log.append(entry);
    const id = this.#idOf(position, entry.batchSize);
    const stored = this.#facts.store.append({ topic: this.name, ledgerId: id.ledgerId, entryId: id.entryId }, entry);
    if (stored === undefined) {
      this.#appended(position, entry);
      return { id, stored };
    }
    const confirmed = stored.then(
      () => this.#appended(position, entry),
      (error: unknown) => {
        this.log.confirm(position, false);
        throw error;
      },
    );
    return { id, stored: confirmed };
  }

  /** The subscription of this name, created at `initialPosition` when there is none (S-27). */
  subscription(name: string, initialPosition: InitialPosition): TopicSubscription {
    const known = this.#subscriptions.get(name);
    if (known !== undefined) return known;
    const next = initialPosition === 'earliest' ? this.log.first : this.log.end;
    const made = new TopicSubscription(name, this.#facts, next - 1);
    this.#subscriptions.set(name, made);
    return made;
  }

  /** All consumers are disconnected, what is published from now on goes to a new ledger; nothing stored is lost. */
  unload(): void {
    for (const subscription of this.#subscriptions.values()) subscription.unload();
    this.log.seal();
  }

  #appended(position: number, entry: Entry): void {
    this.log.confirm(position, true);
    this.#messagesIn += entry.messages.length;
    for (const subscription of this.#subscriptions.values()) subscription.wake();
    if (this.#subscriptions.size === 0) this.#trim();
  }

  #trim(): void {
    let passed = this.log.end;
    for (const { cursor } of this.#subscriptions.values()) passed = Math.min(passed, cursor.markDelete + 1);
    this.log.trim(passed);
  }

  #idOf(position: number, batchSize: number): MessageId {
    const ledger = this.log.ledgerOf(position);
    const entryId = position - (ledger?.first ?? 0);
    const { partition, name: topic } = this;
    return { ledgerId: ledger?.id ?? -1, entryId, partition, batchIndex: -1, batchSize, topic };
  }
}
