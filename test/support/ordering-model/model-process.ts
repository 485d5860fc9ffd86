// One process of the model: a runtime on a transport of its own, whose calls can be made to go wrong, and which can end from
// one moment to the next, with its timers and all it knew.
import type {
  Delivery,
  Logger,
  Outcome,
  ReceivedMessage,
  Runtime,
  Subscription,
  SubscriptionHandle,
} from '../../../src/index.js';
import type { BlockedKey } from '../../../src/ports/runtime-view.js';
import {
  Runtime as PulseworkRuntime,
  defer,
  defineHandler,
  dependencyDown,
  fixedBackoff,
  poison,
  retry,
  retryAfter,
  success,
  topic,
} from '../../../src/index.js';
import type { EmbeddedBroker, EmbeddedTransport } from '../../../src/embedded.js';
import { embedded } from '../../../src/embedded.js';
import type { Fault, FaultPlan } from '../../../src/testing.js';
import { FaultyTransport } from '../../../src/testing.js';
import { MortalClock } from '../../../src/testing/mortal-clock.js';
import { subscriptionWith } from '../../../src/testing/subscription-with.js';
import { transportWith } from '../transport-with.js';
import type { Observer } from './observer.js';
import { numberIn } from './observer.js';
import type { Ending, Setting } from './program.js';

export const SOURCE = 'accounts';
export const SUBSCRIPTION = 's';

const SILENT: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

export interface ProcessFacts {
  /** 1 for the first one. */
  readonly number: number;
  readonly broker: EmbeddedBroker;
  readonly setting: Setting;
  readonly observer: Observer;
  /** Whether every run is to end with success from now on. */
  readonly allSucceed: () => boolean;
}

export class ModelProcess {
  readonly number: number;
  readonly #facts: ProcessFacts;
  readonly #clock: MortalClock;
  readonly #inner: EmbeddedTransport;
  readonly #faults: { -readonly [K in keyof FaultPlan]: FaultPlan[K] };
  readonly #transport: FaultyTransport;
  #runtime: Runtime | undefined;
  #leaving = false;
  /** By partition: how often it had been unloaded when this process joined. */
  readonly #startEpochs: ReadonlyMap<string, number>;
  /** By message: the same for the connection that it came over last. */
  readonly #epochs = new Map<number, number>();

  constructor(facts: ProcessFacts) {
    const { number, broker } = facts;
    this.number = number;
    this.#facts = facts;
    this.#clock = new MortalClock(broker.clock);
    this.#inner = embedded({ broker });
    this.#startEpochs = new Map(broker.partitionsOf(SOURCE).map((name) => [name, facts.observer.epochOf(name)]));
    // The name is the consumer's place on the ring, and the runtime's own is another one in each process of Node. Handlers have
    // at least 1 message in store, subscriptions none where that is wanted.
    const { prefetch } = facts.setting;
    const named = transportWith(this.#inner, {
      subscribe: async (spec) =>
        this.#watched(await this.#inner.subscribe({ ...spec, prefetch, consumerName: `process-${number}` })),
    });
    this.#faults = { at: 0, fault: 'throws', clock: this.#clock, onGone: () => this.crash() };
    this.#transport = new FaultyTransport(named, this.#faults);
  }

  /** It takes messages: it has not ended, and does not leave. */
  get isThere(): boolean {
    return !this.#clock.ended && !this.#leaving;
  }

  /** It is there, or has not left yet. */
  get isConnected(): boolean {
    return !this.#clock.ended && this.#runtime?.state !== 'closed';
  }

  get blockedKeys(): readonly BlockedKey[] {
    return this.isThere ? (this.#handle?.blockedKeys() ?? []) : [];
  }

  async start(): Promise<void> {
    const { mode, keyBlocks, concurrency, maxLaneMessages, maxDeliveries, backoffMs } = this.#facts.setting;
    this.#runtime = await PulseworkRuntime.start({
      transport: this.#transport,
      logger: SILENT,
      random: () => 0.5,
      handlers: [
        defineHandler({
          ...{ name: 'ledger', source: topic(SOURCE), subscription: SUBSCRIPTION, type: 'key-shared', ordering: 'key' },
          ...{ concurrency, maxLaneMessages, onDeadLetter: keyBlocks ? 'block-key' : 'continue' },
          orderedNegativeAck: mode === 'disabled' ? 'disabled' : 'best-effort',
          redelivery: { maxDeliveries, backoff: fixedBackoff(backoffMs) },
          handle: (delivery) => this.#handled(delivery),
        }),
      ],
    });
  }

  /** Leaves as a service does that is deployed anew. */
  drain(): void {
    this.#leaving = true;
    this.#facts.observer.processLeaves();
    void this.#runtime?.drain();
  }

  /** Its connection ends and its memory is gone. */
  crash(): void {
    this.#clock.end();
    this.#facts.observer.processGone(this.number);
    void this.#inner.close();
  }

  /** Its next call to the broker goes wrong. */
  failNextCall(fault: Fault): void {
    this.#faults.fault = fault;
    this.#faults.at = this.#transport.counted + 1;
  }

  failNoCall(): void {
    this.#faults.at = 0;
  }

  pause(): void {
    this.#handle?.pause();
  }

  resume(): void {
    this.#handle?.resume();
  }

  release({ key }: BlockedKey): void {
    this.#handle?.release(key);
  }

  skip({ key }: BlockedKey): void {
    this.#handle?.skip(key);
  }

  get #handle(): SubscriptionHandle | undefined {
    return this.#runtime?.subscription(SUBSCRIPTION, SOURCE);
  }

  /** Writes down over which connection each message came last. */
  #watched(inner: Subscription): Subscription {
    return subscriptionWith(inner, {
      receive: (signal) => {
        // Beside the answer: a step in between would put off arrivals, and so hide what comes of early ones.
        const received = inner.receive(signal);
        received.then(
          (message) => message && this.#epochs.set(numberIn(message.payload), this.#epochOf(message)),
          () => undefined,
        );
        return received;
      },
    });
  }

  /** It connects once at its start, and once after each unload. */
  #epochOf({ id, connection }: ReceivedMessage): number {
    return (this.#startEpochs.get(id.topic) ?? 0) + connection - 1;
  }

  async #handled({ payload, attempt }: Delivery): Promise<Outcome> {
    // The last thing that a process does which is gone reaches nobody.
    if (this.#clock.ended) return new Promise(() => undefined);
    const { observer, allSucceed } = this.#facts;
    const number = payload as number;
    const epoch = this.#epochs.get(number) ?? 0;
    const run = observer.started({ process: this.number, number, attempt, epoch });
    const { endings, runs } = run.message;
    const ending = (allSucceed() ? undefined : endings[runs - 1]) ?? SUCCESS;
    if (ending.runMs > 0) await new Promise<void>((resolve) => this.#clock.setTimer(ending.runMs, resolve));
    observer.ended(run, ending, attempt);
    return outcomeOf(ending);
  }
}

const SUCCESS: Ending = { how: 'success', delayMs: 0, runMs: 0 };

/** @throws Error where the run ends with one. */
function outcomeOf({ how, delayMs }: Ending): Outcome {
  switch (how) {
    case 'success':
      return success();
    case 'retry':
      return retry();
    case 'retry-after':
      return retryAfter(delayMs);
    case 'throw':
      throw new Error('failed on purpose');
    case 'defer':
      return defer(delayMs);
    case 'poison':
      return poison('bad on purpose');
    case 'dependency-down':
      return dependencyDown('the database', { retryAfterMs: delayMs });
  }
}

function nothing(): void {}
