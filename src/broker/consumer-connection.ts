// The way from the broker to one consumer and back, on which deliveries and receipts may be late, lost or doubled on
// purpose. Nothing passes what went before it: it is one connection. Without faults everything goes straight through.
import type { EntryPosition } from '../core/message-id.js';
import type { Clock, Timer } from '../ports/clock.js';
import { AckSet } from './ack-set.js';
import type { BrokerConsumer, ConsumerSink, DeliveredEntry } from './broker-consumer.js';
import type { BrokerFaults, ConnectionPlace } from './broker-faults.js';
import { lostOnPurpose } from './broker-faults.js';
import type { Stored } from './broker-store.js';

export interface ConnectionParts {
  readonly place: ConnectionPlace;
  readonly faults: BrokerFaults;
  readonly clock: Clock;
  /** Runs in the broker's next turn: a dispatch that is going on must not lose its consumer. */
  readonly later: (run: () => void) => void;
}

/** What is late, and from when on it may arrive. */
interface Late {
  readonly dueMs: number;
  readonly arrive: () => void;
}

export class ConsumerConnection implements ConsumerSink {
  readonly #sink: ConsumerSink;
  readonly #parts: ConnectionParts;
  /** Of its subscription: the consumer and how it is disconnected. */
  #consumer: BrokerConsumer | undefined;
  #disconnect: () => void = () => undefined;
  /** In the order in which they left the broker; due times never fall. */
  readonly #late: Late[] = [];
  #timer: Timer | undefined;
  /** Of everything else that is to happen later: none outlives the connection. */
  readonly #timers = new Set<Timer>();
  /** Whether what is sent is lost, and when that is found out. */
  #silent = false;
  /** Entries that the client gave back in the order of their key, by `ledger:entry`, while copies are under way. */
  readonly #givenBack = new Set<string>();
  /** Receipts under way: they fail when the connection does. */
  readonly #receipts = new Set<() => void>();

  constructor(sink: ConsumerSink, parts: ConnectionParts) {
    this.#sink = sink;
    this.#parts = parts;
  }

  /** @param disconnect takes the consumer off its subscription; what it holds goes back, uncounted */
  opened(consumer: BrokerConsumer, disconnect: () => void): void {
    this.#consumer = consumer;
    this.#disconnect = disconnect;
  }

  /**
   * The client gave them back in the order of their key: the broker sends them in their place, and no copy before that (K-46
   * takes one that comes again for the sign that nothing earlier waits).
   */
  gaveBack(ids: readonly EntryPosition[]): void {
    if (!this.#parts.faults.none || this.#timers.size > 0) for (const id of ids) this.#givenBack.add(keyOf(id));
  }

  deliver(delivered: DeliveredEntry): void {
    if (this.#silent) return;
    const { faults, place } = this.#parts;
    const fate = faults.none ? undefined : faults.ofDelivery(place);
    if (fate === undefined && this.#late.length === 0) return this.#handOver(delivered);
    if (fate?.silentMs !== undefined) return this.#loseFromNowOn(fate.silentMs);
    const kept = lasting(delivered);
    this.#pass(fate?.delayMs ?? 0, () => {
      this.#handOver(kept);
      for (const ms of fate?.copiesAfterMs ?? []) this.#copyAfter(ms, kept);
    });
    if (fate?.disconnects === true) this.#pass(0, () => this.#loseFromNowOn(0));
  }

  activeChanged(active: boolean): void {
    if (!this.#silent) this.#pass(0, () => this.#sink.activeChanged(active));
  }

  endOfTopic(): void {
    if (!this.#silent) this.#pass(0, () => this.#sink.endOfTopic?.());
  }

  disconnected(): void {
    this.closed();
    this.#sink.disconnected();
  }

  /** Its consumer left: nothing comes any more, and no timer keeps the process for it. */
  closed(): void {
    this.#silent = true;
    this.#late.length = 0;
    this.#timer?.cancel();
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    for (const fail of this.#receipts) fail();
    this.#receipts.clear();
  }

  /** The receipt of an acknowledgement as the client gets it. */
  receipt(stored: Stored): Stored {
    const { faults, place } = this.#parts;
    const lateMs = faults.none ? 0 : faults.ofReceipt(place);
    if (lateMs === 0) return stored;
    return new Promise<void>((resolve, reject) => {
      const fail = (): void => reject(lostOnPurpose('acknowledging'));
      this.#receipts.add(fail);
      this.#after(lateMs, () => {
        this.#receipts.delete(fail);
        resolve(stored);
      });
    });
  }

  #handOver(delivered: DeliveredEntry): void {
    if (this.#givenBack.size > 0) this.#givenBack.delete(keyOf(delivered));
    this.#sink.deliver(delivered);
  }

  /** Hands on now, or behind what is late. */
  #pass(delayMs: number, arrive: () => void): void {
    if (delayMs === 0 && this.#late.length === 0) return arrive();
    const dueMs = Math.max(this.#parts.clock.now() + delayMs, this.#late.at(-1)?.dueMs ?? 0);
    this.#late.push({ dueMs, arrive });
    if (this.#late.length === 1) this.#waitFor(dueMs);
  }

  #waitFor(dueMs: number): void {
    const { clock } = this.#parts;
    this.#timer = clock.setTimer(dueMs - clock.now(), () => this.#arrive());
  }

  #arrive(): void {
    const { clock } = this.#parts;
    while (!this.#silent && this.#consumer?.connected === true) {
      const [next] = this.#late;
      if (next === undefined) return;
      if (next.dueMs > clock.now()) return this.#waitFor(next.dueMs);
      next.arrive();
      this.#late.shift();
    }
  }

  #loseFromNowOn(silentMs: number): void {
    this.#silent = true;
    this.#late.length = 0;
    this.#timer?.cancel();
    const { later } = this.#parts;
    if (silentMs === 0) later(() => this.#cut());
    else this.#after(silentMs, () => later(() => this.#cut()));
  }

  #after(ms: number, run: () => void): void {
    const timer = this.#parts.clock.setTimer(ms, () => {
      this.#timers.delete(timer);
      run();
    });
    this.#timers.add(timer);
  }

  #cut(): void {
    if (this.#consumer?.connected !== true) return;
    this.#disconnect();
    this.disconnected();
  }

  #copyAfter(ms: number, delivered: DeliveredEntry): void {
    const arrive = (): void => {
      if (this.#silent || this.#consumer?.connected !== true || this.#givenBack.has(keyOf(delivered))) return;
      // A copy uses up permits as every delivery does: the client counts it.
      this.#consumer.grant(-(delivered.unacked?.count ?? delivered.entry.messageCount));
      this.#sink.deliver(delivered);
    };
    if (ms === 0) this.#parts.later(arrive);
    else this.#after(ms, arrive);
  }
}

function keyOf({ ledgerId, entryId }: Pick<EntryPosition, 'ledgerId' | 'entryId'>): string {
  return `${ledgerId}:${entryId}`;
}

/** What the broker hands over is valid during the call only. */
function lasting(delivered: DeliveredEntry): DeliveredEntry {
  const { unacked, entry } = delivered;
  if (unacked === undefined) return { ...delivered };
  const copy = new AckSet(entry.messageCount);
  for (let index = 0; index < entry.messageCount; index++) if (!unacked.has(index)) copy.acknowledge(index);
  return { ...delivered, unacked: copy };
}
