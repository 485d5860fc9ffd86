// The producers of one topic: whose name is taken (S-45), who has the topic for itself, and who waits for that (G-14).
import { producerBusy, producerFenced } from './broker-errors.js';
import type { BrokerProducer } from './broker-producer.js';

export class TopicProducers {
  readonly #topic: string;
  /** By name. */
  readonly #live = new Map<string, BrokerProducer>();
  /** The one that has the topic for itself. */
  #exclusive: BrokerProducer | undefined;
  /** First come, first served; without a limit of time. */
  #waiting: BrokerProducer[] = [];

  /** @param topic full name, for errors. */
  constructor(topic: string) {
    this.#topic = topic;
  }

  get live(): readonly BrokerProducer[] {
    return [...this.#live.values()];
  }

  /** Whether a producer of this name may publish. */
  has(name: string): boolean {
    return this.#live.has(name);
  }

  /** How many are in line for the topic. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Whether only one producer may publish. */
  get isExclusive(): boolean {
    return this.#exclusive !== undefined;
  }

  /**
   * Lets it in, puts it in line (its state is `waiting` then), or refuses it.
   * @returns those that it shuts out; shared ones of them may come again once it has left.
   * @throws TransportError PRODUCER_BUSY, PRODUCER_FENCED.
   */
  attach(producer: BrokerProducer): readonly BrokerProducer[] {
    switch (producer.accessMode) {
      case 'shared':
        if (this.#isHeld) throw producerBusy(`topic "${this.#topic}" has an existing exclusive producer`);
        this.#admit(producer);
        return [];
      case 'exclusive':
        this.#checkFree();
        this.#admitAlone(producer);
        return [];
      case 'wait-for-exclusive':
        if (this.#isHeld || this.#live.size > 0) this.#enqueue(producer);
        else this.#admitAlone(producer);
        return [];
      case 'exclusive-with-fencing': {
        const out = this.#fenceAll();
        this.#admitAlone(producer);
        return out;
      }
    }
  }

  /** It left by itself. Who waits longest comes next once nobody is left. */
  detach(producer: BrokerProducer): void {
    producer.become('closed');
    this.#waiting = this.#waiting.filter((other) => other !== producer);
    if (this.#live.get(producer.name) !== producer) return;
    this.#live.delete(producer.name);
    if (this.#exclusive === producer) this.#exclusive = undefined;
    if (this.#live.size > 0) return;
    const next = this.#waiting.shift();
    if (next !== undefined) this.#admitAlone(next);
  }

  /** All are closed and may come again. @returns them, those in line too. */
  disconnectAll(): readonly BrokerProducer[] {
    const all = [...this.#live.values(), ...this.#waiting];
    this.#empty();
    for (const producer of all) producer.become('disconnected');
    return all;
  }

  get #isHeld(): boolean {
    return this.#exclusive !== undefined || this.#waiting.length > 0;
  }

  #checkFree(): void {
    if (this.#isHeld) throw producerFenced(`topic "${this.#topic}" has an existing exclusive producer`);
    if (this.#live.size > 0) throw producerFenced(`topic "${this.#topic}" has existing shared producers`);
  }

  /** A name counts from admission on: who waits for a producer of its own name to leave does not collide with it. */
  #admit(producer: BrokerProducer): void {
    const { name } = producer;
    if (this.#live.has(name)) {
      throw producerBusy(`Producer with name '${name}' is already connected to topic '${this.#topic}'`);
    }
    this.#live.set(name, producer);
    producer.become('attached');
  }

  #admitAlone(producer: BrokerProducer): void {
    this.#admit(producer);
    this.#exclusive = producer;
  }

  #enqueue(producer: BrokerProducer): void {
    producer.wait();
    this.#waiting.push(producer);
  }

  /**
   * The owner and those in line are out for good. Shared ones are only cut off, as Pulsar 4.0.7 does: they come again and
   * are refused until the topic is free.
   */
  #fenceAll(): readonly BrokerProducer[] {
    const all = [...this.#live.values(), ...this.#waiting];
    this.#empty();
    for (const producer of all) producer.become(producer.accessMode === 'shared' ? 'disconnected' : 'fenced');
    return all.filter(({ state }) => state === 'disconnected');
  }

  #empty(): void {
    this.#live.clear();
    this.#waiting = [];
    this.#exclusive = undefined;
  }
}
