// A random program against Key_Shared with failed and returned messages, and beside it what a plain list knows: which
// entries failed and are not acknowledged. Every delivery is checked against that list, and so is what is not delivered.
import { slotOf } from '../../../src/broker/hash-ring.js';
import type { ConsumerSink, DeliveredEntry } from '../../../src/broker/broker-consumer.js';
import type { BrokerOptions } from '../../../src/broker/broker-options.js';
import type { ConsumerHandle } from '../../../src/broker/consumer-handle.js';
import { EmbeddedBroker } from '../../../src/broker/embedded-broker.js';
import { murmur3 } from '../../../src/core/key-hash.js';
import type { EncodedMessage } from '../../../src/core/message.js';
import type { MessageId } from '../../../src/core/message-id.js';
import { FakeClock, settlePromises } from '../../../src/testing/fake-clock.js';

const TOPIC = 'persistent://public/default/t';
/** The last two of them share a hash, and so do the two before (K-04). */
const KEYS = ['A', 'B', 'C', 'key-12', 'key-540', 'key-107', 'key-411'];
const EXPIRY_MS = 15;

export type StepKind =
  | 'publish'
  | 'batch'
  | 'acknowledge'
  | 'fail'
  | 'failAndReturn'
  | 'return'
  | 'nameAny'
  | 'redeliver'
  | 'flow'
  | 'join'
  | 'leave'
  | 'expire'
  | 'unload';

export interface Step {
  readonly kind: StepKind;
  readonly pick: number;
}

interface StoredEntry {
  /** In the order of the topic. */
  readonly position: number;
  readonly slot: number;
  readonly publishedMs: number;
  /** It may be sent before its publisher knows them. */
  ids: readonly MessageId[];
  /** Indexes that are not acknowledged. */
  readonly open: Set<number>;
}

class Client implements ConsumerSink {
  readonly name: string;
  readonly held = new Set<StoredEntry>();
  handle!: ConsumerHandle;
  readonly #delivered: (client: Client, delivered: DeliveredEntry) => void;

  constructor(name: string, delivered: (client: Client, delivered: DeliveredEntry) => void) {
    this.name = name;
    this.#delivered = delivered;
  }

  deliver(delivered: DeliveredEntry): void {
    this.#delivered(this, delivered);
  }

  activeChanged(): void {
    // Not on Key_Shared.
  }

  disconnected(): void {
    // An unload: the program closes all clients itself.
  }
}

export interface ProgramOptions extends BrokerOptions {
  /** Whether failed messages are named to the broker at all; those that are returned with them always are. @default true */
  readonly namesFailed?: boolean;
}

export class RetryingProgram {
  /** Rules that were broken; empty for a broker that keeps them. */
  readonly violations: string[] = [];
  /** Every delivery: to whom, what, and its count. */
  readonly trace: string[] = [];
  readonly #clock = new FakeClock();
  readonly #broker: EmbeddedBroker;
  readonly #namesFailed: boolean;
  readonly #keepsOrder: boolean;
  readonly #entries: StoredEntry[] = [];
  /** What failed and is not acknowledged. */
  readonly #failed = new Set<StoredEntry>();
  #clients: Client[] = [];
  #opened = 0;

  constructor({ namesFailed = true, ...options }: ProgramOptions = {}) {
    this.#namesFailed = namesFailed;
    this.#keepsOrder = namesFailed && options.keySharedNegativeAckOrdering !== false;
    this.#broker = new EmbeddedBroker({ clock: this.#clock, maxLedgerEntries: 5, ...options });
  }

  async run(steps: readonly Step[]): Promise<void> {
    this.#join();
    for (const step of steps) {
      await this.#clock.advanceBy(1);
      await this.#step(step);
      await settlePromises();
      this.#checkFigures();
      this.#checkNothingWaitsInVain();
    }
    await this.#drain();
  }

  async #step({ kind, pick }: Step): Promise<void> {
    if (kind === 'publish' || kind === 'batch') {
      await this.#publish(kind === 'batch' ? 3 : 1, pick);
    } else if (kind === 'expire') {
      this.#expire();
    } else if (kind === 'unload') {
      this.#unload();
    } else if (kind === 'join') {
      if (this.#clients.length < 4) this.#join();
    } else {
      const client = this.#clients[pick % Math.max(1, this.#clients.length)];
      if (client === undefined) this.#join();
      else this.#clientStep(kind, client, pick);
    }
  }

  #clientStep(kind: StepKind, client: Client, pick: number): void {
    const entry = [...client.held][pick % Math.max(1, client.held.size)];
    if (kind === 'flow') client.handle.flow(1 + (pick % 7));
    else if (kind === 'leave') this.#leave(client);
    else if (kind === 'nameAny') this.#nameAny(client, pick);
    else if (entry === undefined) return;
    else if (kind === 'acknowledge') this.#acknowledge(client, entry, pick);
    else if (kind === 'redeliver') this.#redeliver(client, [entry]);
    else if (kind === 'fail') this.#fail(client, [entry], []);
    else this.#fail(client, kind === 'return' ? [] : [entry], this.#laterOf(client, entry));
  }

  async #publish(messages: number, pick: number): Promise<void> {
    const key = KEYS[pick % KEYS.length] ?? '';
    const position = this.#entries.length;
    const open = new Set(Array.from({ length: messages }, (_, index) => index));
    const entry = { position, slot: slotOf(murmur3(key)), publishedMs: this.#clock.now(), ids: [], open };
    this.#entries.push(entry);
    await this.#stored(entry, { payload: new TextEncoder().encode(String(position)), properties: {}, key });
  }

  async #stored(entry: StoredEntry, message: EncodedMessage): Promise<void> {
    const messages = [...entry.open].map(() => message);
    if (messages.length > 1) entry.ids = await this.#broker.publishBatch(TOPIC, messages);
    else entry.ids = [await this.#broker.publish(TOPIC, message)];
  }

  #join(): void {
    this.#opened += 1;
    const client = new Client(`c${this.#opened}`, (to, delivered) => this.#delivered(to, delivered));
    const request = { topic: TOPIC, subscription: 's', type: 'key-shared', initialPosition: 'earliest' } as const;
    client.handle = this.#broker.subscribe({ ...request, consumerName: client.name }, client);
    this.#clients.push(client);
    client.handle.flow(4);
  }

  #leave(client: Client): void {
    client.handle.close();
    this.#clients = this.#clients.filter((other) => other !== client);
    // The last one leaves nothing behind (K-29).
    if (this.#clients.length === 0) this.#failed.clear();
  }

  #unload(): void {
    this.#broker.unload(TOPIC);
    for (const client of this.#clients) client.handle.close();
    this.#clients = [];
    this.#failed.clear();
    // Of batches that were done in part, all messages come again.
    for (const { open, ids } of this.#entries) if (open.size > 0) for (const index of ids.keys()) open.add(index);
  }

  #expire(): void {
    this.#broker.expireMessages(TOPIC, 's', EXPIRY_MS);
    const beforeMs = this.#clock.now() - EXPIRY_MS;
    for (const entry of this.#entries) if (entry.publishedMs < beforeMs) this.#done(entry);
  }

  #acknowledge(client: Client, entry: StoredEntry, pick: number): void {
    const indexes = [...entry.open];
    const index = indexes[pick % indexes.length] ?? 0;
    const id = entry.ids[index];
    if (id === undefined) throw new Error(`entry ${entry.position} has no message ${index}`);
    void client.handle.acknowledge([id]);
    entry.open.delete(index);
    if (entry.open.size === 0) this.#done(entry);
  }

  #done(entry: StoredEntry): void {
    entry.open.clear();
    this.#failed.delete(entry);
    for (const client of this.#clients) client.held.delete(entry);
  }

  #redeliver(client: Client, entries: readonly StoredEntry[]): void {
    client.handle.redeliver(entries.flatMap(({ ids }) => ids));
    for (const entry of entries) client.held.delete(entry);
  }

  /** What PIP-493's client returns: of the same hash, at this consumer, and later. */
  #laterOf(client: Client, entry: StoredEntry): readonly StoredEntry[] {
    return [...client.held].filter(({ slot, position }) => slot === entry.slot && position > entry.position);
  }

  #fail(client: Client, failed: readonly StoredEntry[], returned: readonly StoredEntry[]): void {
    const firstIds = (entries: readonly StoredEntry[]): MessageId[] => entries.flatMap(({ ids }) => ids.slice(0, 1));
    if (this.#namesFailed || returned.length > 0)
      client.handle.negativeAcknowledgeOrdered(this.#namesFailed ? firstIds(failed) : [], firstIds(returned));
    if (this.#keepsOrder) for (const entry of failed) this.#failed.add(entry);
    for (const entry of returned) client.held.delete(entry);
  }

  /** Whatever is named: only what this consumer holds counts (K-26). */
  #nameAny(client: Client, pick: number): void {
    const entry = this.#entries[pick % Math.max(1, this.#entries.length)];
    const other = this.#entries[(pick * 7) % Math.max(1, this.#entries.length)];
    if (entry === undefined || other === undefined || entry === other) return;
    const [failed, returned] = [[entry], [other]].map((named) => named.filter((one) => client.held.has(one)));
    client.handle.negativeAcknowledgeOrdered(this.#namesFailed ? entry.ids : [], other.ids);
    if (this.#keepsOrder) for (const one of failed ?? []) this.#failed.add(one);
    for (const one of returned ?? []) client.held.delete(one);
  }

  #earliestFailed(slot: number): number {
    const own = [...this.#failed].filter((entry) => entry.slot === slot);
    return Math.min(Infinity, ...own.map(({ position }) => position));
  }

  #delivered(client: Client, delivered: DeliveredEntry): void {
    const { redeliveryCount, ledgerId, entryId } = delivered;
    const text = new TextDecoder().decode(delivered.entry.messageAt(0).payload ?? undefined);
    const entry = this.#entries[Number(text)];
    if (entry === undefined) throw new Error(`${ledgerId}:${entryId} was not published`);
    const { position, slot } = entry;
    this.trace.push(`${client.name} ${position} ${redeliveryCount}`);
    const earliest = this.#earliestFailed(slot);
    if (position > earliest) this.violations.push(`${position} was sent before ${earliest} was acknowledged`);
    if (earliest === Infinity && this.#isFull) this.violations.push(`${position} was sent beyond the ceiling`);
    if (entry.open.size === 0) this.violations.push(`${position} was sent after it was acknowledged`);
    const others = this.#clients.filter((other) => other !== client);
    if (others.some(({ held }) => [...held].some((other) => other.slot === slot)))
      this.violations.push(`${position} was sent while another consumer held its hash`);
    client.held.add(entry);
  }

  #checkFigures(): void {
    const { retryingPositions, retryingHashes } = this.#stats();
    const slots = new Set([...this.#failed].map(({ slot }) => slot));
    if (retryingPositions === this.#failed.size && retryingHashes === slots.size) return;
    const found = `${retryingPositions} positions of ${retryingHashes} hashes`;
    this.violations.push(`${found} retry, it should be ${this.#failed.size} of ${slots.size}`);
  }

  get #isFull(): boolean {
    return this.#failed.size >= this.#broker.options.keySharedMaxRetryingPositions;
  }

  /** With room everywhere and nothing drained, what is at nobody waits for a failed one before it, or for the ceiling. */
  #checkNothingWaitsInVain(): void {
    const { consumers, drainingHashes, replay } = this.#stats();
    const { keySharedLookAheadPerSubscription } = this.#broker.options;
    const roomEverywhere = consumers.length > 0 && consumers.every(({ permits, blocked }) => permits > 0 && !blocked);
    if (!roomEverywhere || drainingHashes > 0 || replay >= keySharedLookAheadPerSubscription) return;
    for (const entry of this.#entries) {
      if (entry.open.size === 0 || this.#clients.some(({ held }) => held.has(entry))) continue;
      const earliest = this.#earliestFailed(entry.slot);
      if (entry.position > earliest || (this.#isFull && earliest === Infinity)) continue;
      this.violations.push(`${entry.position} waits in vain`);
    }
  }

  /** Those that are connected take and settle all there is: nothing waits for ever. */
  async #drain(): Promise<void> {
    if (this.#clients.length === 0) this.#join();
    for (let rounds = 0; this.#stats().backlog > 0; rounds++) {
      if (rounds > this.#entries.length * 2)
        return void this.violations.push(`wedged: ${JSON.stringify(this.#stats())}`);
      for (const client of [...this.#clients]) this.#settleSome(client, rounds);
      await settlePromises();
    }
    this.#checkFigures();
    const { replay, unacked } = this.#stats();
    if (replay > 0 || unacked > 0) this.violations.push(`${replay} wait and ${unacked} are held at the end`);
  }

  #settleSome(client: Client, round: number): void {
    client.handle.flow(10);
    const held = [...client.held].toSorted((a, b) => a.position - b.position);
    const failed = held.filter((entry) => this.#failed.has(entry));
    if (round === 0) return this.#redeliver(client, failed);
    for (const entry of held) while (entry.open.size > 0) this.#acknowledge(client, entry, 0);
  }

  #stats() {
    const stats = this.#broker.stats(TOPIC).subscriptions.get('s');
    if (stats === undefined) throw new Error('there is no subscription');
    return stats;
  }
}
