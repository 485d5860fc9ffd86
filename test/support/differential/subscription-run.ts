// One subscription of a differential program while it runs on a broker: its consumers by slot, what they hold, and the calls
// that steps make on them.
import type { MessageId, Subscription, SubscriptionState } from 'pulsework';
import { Arrivals } from './arrivals.js';
import type { DifferentialWorld } from './differential-world.js';
import type { SeekPlan, SubscriptionPlan } from './program.js';

/** Of the consumer that sees what is left. */
export const LAST_SLOT = 9;
const WIDE = 1_000;
/** Pulsar 4.0.7: a rewind that meets a read under way passes over entries. */
const BEFORE_REWIND_MS = 200;
/**
 * Pulsar 4.0.7: when the last consumer of a Shared or Key_Shared subscription leaves while what another one gave back is being
 * read, the next consumer gets that and nothing else until something is published.
 */
const AFTER_CLOSE_MS = 200;

/** Whether what one consumer gave back goes out before another one's request comes is a matter of milliseconds. */
const BETWEEN_REQUESTS_MS = 200;

interface OpenConsumer {
  readonly port: Subscription;
  /** Ends its `receive`. */
  readonly end: AbortController;
  state: SubscriptionState['state'];
  connection: number;
}

export class SubscriptionRun {
  readonly name: string;
  #plan: SubscriptionPlan;
  readonly arrivals = new Arrivals();
  readonly #world: DifferentialWorld;
  readonly #topic: string;
  readonly #consumers = new Map<number, OpenConsumer>();
  #consumersBefore = 0;

  constructor(world: DifferentialWorld, topic: string, sub: number, plan: SubscriptionPlan) {
    this.#world = world;
    this.#topic = topic;
    this.name = `s${sub + 1}`;
    this.#plan = plan;
  }

  /** With the type that it has now. */
  get plan(): SubscriptionPlan {
    return this.#plan;
  }

  /** How many consumers there were when the step began. */
  get consumersBefore(): number {
    return this.#consumersBefore;
  }

  get openSlots(): readonly number[] {
    return [...this.#consumers.keys()].sort();
  }

  isOpen(slot: number): boolean {
    return this.#consumers.has(slot);
  }

  /** On Exclusive and Failover one consumer gets everything, and a request for redelivery means all of it. */
  get hasOneActive(): boolean {
    return this.#plan.type === 'exclusive' || this.#plan.type === 'failover';
  }

  get activeSlots(): readonly number[] {
    return this.openSlots.filter((slot) => this.#consumers.get(slot)?.state === 'active');
  }

  /** How often each consumer has connected. */
  get connections(): readonly number[] {
    return this.openSlots.map((slot) => this.#consumers.get(slot)?.connection ?? 0);
  }

  beginStep(): void {
    this.arrivals.beginStep();
    this.#consumersBefore = this.#consumers.size;
  }

  async open(slot: number, type = this.#plan.type): Promise<void> {
    const { initialPosition, flow } = this.#plan;
    const isWide = flow === 'wide' || slot === LAST_SLOT;
    const port = await this.#world.transport.subscribe({
      topics: [this.#topic],
      subscription: this.name,
      type,
      initialPosition,
      prefetch: isWide ? WIDE : 0,
      consumerName: `consumer-${slot + 1}`,
    });
    this.#plan = { ...this.#plan, type };
    const consumer: OpenConsumer = { port, end: new AbortController(), state: 'lost', connection: 0 };
    this.#consumers.set(slot, consumer);
    port.onState(({ state, connection }) => {
      Object.assign(consumer, { state, connection });
      // What it held goes to the one that is active now.
      if (state === 'standby') this.arrivals.releaseSlot(slot);
    });
    if (isWide) void this.#takeAll(slot, consumer);
  }

  async close(slot: number): Promise<void> {
    const consumer = this.#consumers.get(slot);
    this.#consumers.delete(slot);
    this.arrivals.releaseSlot(slot);
    consumer?.end.abort();
    await consumer?.port.close();
  }

  /** @param expected how many must come. */
  async consume(slot: number, count: number, expected: number): Promise<void> {
    const { port } = this.#consumer(slot);
    for (let taken = 0; taken < count; taken++) {
      const end = new AbortController();
      const receiving = port.receive(end.signal);
      const message = await this.#world.comes(receiving, taken < expected);
      end.abort();
      // It may have come in the very moment at which it was given up.
      const late = message ?? (await receiving);
      if (late === undefined) return;
      this.arrivals.came(slot, late);
    }
  }

  /** @param slot who does it; -1 for those who hold them. */
  async acknowledge(texts: readonly string[], slot: number): Promise<void> {
    const bySlot = this.#bySlot(texts, slot);
    for (const text of texts) this.arrivals.release(text);
    for (const [by, ids] of bySlot) await this.#consumer(by).port.acknowledge(ids);
  }

  async acknowledgeUpTo(text: string): Promise<void> {
    const { slot, message } = this.#heldOne(text);
    this.arrivals.releaseUpTo(message);
    await this.#consumer(slot).port.acknowledgeCumulative(message.id);
  }

  async redeliver(texts: readonly string[]): Promise<void> {
    const bySlot = this.#bySlot(texts, -1);
    if (this.hasOneActive) await this.#world.pause(BEFORE_REWIND_MS);
    for (const text of texts) {
      const held = this.arrivals.holderOf(text);
      if (held !== undefined) this.arrivals.releaseEntryOf(held.message);
    }
    if (this.hasOneActive) this.arrivals.releaseAll();
    for (const [by, ids] of bySlot) {
      await this.#consumer(by).port.redeliver(ids);
      if (bySlot.size > 1) await this.#world.pause(BETWEEN_REQUESTS_MS);
    }
  }

  async seek(slot: number, to: SeekPlan, text: string | undefined): Promise<void> {
    if (this.hasOneActive) await this.#world.pause(BEFORE_REWIND_MS);
    this.arrivals.releaseAll();
    const { port } = this.#consumer(slot);
    if (to === 'earliest' || to === 'latest') return port.seek(to);
    const message = this.arrivals.known(text ?? '');
    if (message === undefined) throw new Error(`${text} never came`);
    await port.seek(to === 'message' ? message.id : new Date(message.publishTimeMs));
  }

  async finish(): Promise<void> {
    for (const slot of this.openSlots) {
      await this.close(slot);
      await this.#world.pause(AFTER_CLOSE_MS);
    }
    await this.open(LAST_SLOT);
  }

  async #takeAll(slot: number, { port, end }: OpenConsumer): Promise<void> {
    for (;;) {
      const message = await port.receive(end.signal);
      if (message === undefined) return;
      this.arrivals.came(slot, message);
    }
  }

  #bySlot(texts: readonly string[], slot: number): Map<number, MessageId[]> {
    const bySlot = new Map<number, MessageId[]>();
    for (const text of texts) {
      const held = this.arrivals.holderOf(text);
      const message = held?.message ?? this.arrivals.known(text);
      const by = slot >= 0 ? slot : held?.slot;
      if (message === undefined || by === undefined) throw new Error(`${this.name}: nobody holds ${text}`);
      bySlot.set(by, [...(bySlot.get(by) ?? []), message.id]);
    }
    return bySlot;
  }

  #heldOne(text: string) {
    const held = this.arrivals.holderOf(text);
    if (held === undefined) throw new Error(`${this.name}: nobody holds ${text}`);
    return held;
  }

  #consumer(slot: number): OpenConsumer {
    const consumer = this.#consumers.get(slot);
    if (consumer === undefined) throw new Error(`${this.name} has no consumer ${slot}`);
    return consumer;
  }
}
