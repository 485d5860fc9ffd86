// A world in which one call of a service goes wrong, perhaps with the end of its process: an embedded broker and stores
// that survive, virtual time, and runtimes that are started again on what is left. Equal cuts do the same.
import { EmbeddedBroker } from '../broker/embedded-broker.js';
import type { ReceivedMessage } from '../core/message.js';
import type { Transport } from '../ports/transport.js';
import type { DrainReport, Runtime } from '../runtime/runtime.js';
import { memoryMetadataStore } from '../stores/memory/memory-metadata-store.js';
import { embedded } from '../transports/embedded/embedded-transport.js';
import { FakeClock } from './fake-clock.js';
import type { CountedCall, Fault } from './faulty-transport.js';
import { FaultyTransport } from './faulty-transport.js';
import { MortalClock } from './mortal-clock.js';
import { readTopic } from './read-topic.js';

/** Which call goes wrong, counted from 1 over the first process (0: none), and how. */
export interface Cut {
  readonly at: number;
  readonly fault: Fault;
}

/** Starts the service on a transport, whose clock is that of the process; `store` wraps a store so that its calls are cut too. */
export type StartService = (
  transport: Transport,
  store: <S extends object>(store: S, methods: readonly (keyof S)[]) => S,
) => Promise<Runtime>;

/** Longer than a call may take, a drain and a subscription's return. */
const DRAIN_MS = 120_000;

export class CrashWorld {
  readonly clock = new FakeClock();
  readonly broker = new EmbeddedBroker({ clock: this.clock, transactions: { store: memoryMetadataStore() } });
  readonly #cut: Cut;
  readonly #start: StartService;
  readonly #onGone: () => void;
  #faulty: FaultyTransport | undefined;
  #runtime: Runtime | undefined;
  #gone = false;
  #restarted = false;
  #readers = 0;

  /** @param onGone told when the process ends: stores that know their owner let go. */
  constructor(cut: Cut, start: StartService, onGone: () => void = () => undefined) {
    this.#cut = cut;
    this.#start = start;
    this.#onGone = onGone;
  }

  /** Calls made by the first process: the range of `Cut.at`. */
  get calls(): number {
    return this.#faulty?.counted ?? 0;
  }

  /** The call that went wrong; undefined when fewer were made. */
  get hit(): CountedCall | undefined {
    return this.#faulty?.hit;
  }

  /** Whether the first process ended in the middle. */
  get crashed(): boolean {
    return this.#gone;
  }

  /** Starts the first process. */
  async start(): Promise<void> {
    const inner = embedded({ broker: this.broker });
    const clock = new MortalClock(this.clock);
    const onGone = (): void => {
      this.#gone = true;
      clock.end();
      this.#onGone();
      void inner.close();
    };
    const faulty = new FaultyTransport(inner, { ...this.#cut, clock, onGone });
    this.#faulty = faulty;
    this.#runtime = await this.#start(faulty, (store, methods) => faulty.store(store, methods));
  }

  /** Lets `ms` pass; where the process has ended in that time, another one takes over for as long again. */
  async pass(ms: number): Promise<void> {
    await this.clock.advanceBy(ms);
    if (!this.#gone || this.#restarted) return;
    await this.restart();
    await this.clock.advanceBy(ms);
  }

  /** Another process on what is left, in which nothing goes wrong. */
  async restart(): Promise<void> {
    this.#restarted = true;
    this.#runtime = await this.#start(embedded({ broker: this.broker }), (store) => store);
  }

  /** Drains the process; undefined where it is not running, or ends before its drain does. */
  async drain(deadlineMs?: number): Promise<DrainReport | undefined> {
    const runtime = this.#runtime;
    if (runtime?.state !== 'running') return undefined;
    const draining = runtime.drain({ deadlineMs });
    await this.clock.advanceBy(DRAIN_MS);
    // A process that ended in its drain never reports.
    return this.#gone && !this.#restarted ? undefined : draining;
  }

  /** Messages of the subscription that are not acknowledged; 0 where topic or subscription do not exist. */
  backlog(topic: string, subscription: string): number {
    if (!this.broker.topics().includes(this.broker.fullName(topic))) return 0;
    return this.broker.stats(topic).subscriptions.get(subscription)?.backlog ?? 0;
  }

  /** Everything a topic holds, in order; nothing is taken away. */
  read(topic: string): Promise<readonly ReceivedMessage[]> {
    return readTopic(this.broker, this.clock, topic, `crash-world-reader-${++this.#readers}`);
  }
}
