// The test kit for handlers: a runtime on an embedded broker and a clock that stands still until the test moves it. Equal
// tests do the same in each run. Handlers must await nothing but memory and this clock: see FakeClock.
import { EmbeddedBroker } from '../broker/embedded-broker.js';
import type { MessageOptions } from '../core/message.js';
import type { MessageId } from '../core/message-id.js';
import { MAX_DURATION_MS, hours, seconds } from '../core/options.js';
import type { Topic } from '../core/topic.js';
import { isTopic, topic as topicNamed } from '../core/topic.js';
import { withoutPartition } from '../core/topic-name.js';
import type { Plugin } from '../ports/plugin.js';
import type { SettlementReport } from '../ports/telemetry.js';
import { encodeMessage } from '../runtime/message-encoder.js';
import type { RuntimeOptions } from '../runtime/runtime-options.js';
import { Runtime } from '../runtime/runtime.js';
import { consoleLogger } from '../system/console-logger.js';
import { memoryMetadataStore } from '../stores/memory/memory-metadata-store.js';
import { embedded } from '../transports/embedded/embedded-transport.js';
import { FakeClock } from './fake-clock.js';
import type { TestDeadLetter, TestMessage, TestOutcome } from './test-reading.js';
import { TestReading } from './test-reading.js';
import type { TestRuntimeOptions } from './test-runtime-options.js';
import { planTest } from './test-runtime-options.js';
import { TopicRecord } from './topic-record.js';

/** Turns of the event loop in which nothing happens, after which nothing more will: a handler may wait for one or two. */
const QUIET_TURNS = 3;

/** A close takes its steps so that what answers within 30 real milliseconds is in time, whatever the limit of a call is. */
const STEPS_PER_CALL = 30;
/** More calls than a close waits for one after the other. */
const CALLS_OF_CLOSE = 30;

/**
 * Starts a runtime with these handlers on an embedded broker and a `FakeClock`.
 * @param given the handlers, or options of `Runtime.start` with them.
 * @throws ConfigurationError and PulseworkError as `Runtime.start`.
 */
export async function testRuntime(given: RuntimeOptions['handlers'] | TestRuntimeOptions): Promise<TestRuntime> {
  const clock = new FakeClock();
  const record = new TopicRecord();
  const broker = new EmbeddedBroker({ clock, store: record, transactions: { store: memoryMetadataStore() } });
  const reports: SettlementReport[] = [];
  const watcher: Plugin = { name: 'pulsework-test-runtime', onSettled: (report) => void reports.push(report) };
  const kit = { logger: consoleLogger({ level: 'silent' }), random: () => 0.5, transport: embedded({ broker }) };
  const { plans, fullName, partitions, runtimeOptions, options } = planTest(given, kit, watcher);
  for (const [topic, count] of partitions) broker.createPartitionedTopic(topic, count);
  const runtime = await Runtime.start(runtimeOptions);
  const reading = new TestReading(plans, record);
  const activity = (): number => record.activity + reports.length;
  const { callTimeoutMs } = options;
  return new TestRuntime({ clock, broker, runtime }, { reading, reports, fullName, activity, callTimeoutMs });
}

interface TestRuntimeParts {
  readonly reading: TestReading;
  readonly reports: readonly SettlementReport[];
  readonly fullName: (name: string) => string;
  /** Grows with everything that happens. */
  readonly activity: () => number;
  readonly callTimeoutMs: number;
}

export class TestRuntime implements AsyncDisposable {
  readonly clock: FakeClock;
  /** For what the kit has no word for: `inject`, `unload`, `stats`, batches. */
  readonly broker: EmbeddedBroker;
  readonly runtime: Runtime;
  readonly #parts: TestRuntimeParts;

  /** Made by `testRuntime`. @internal */
  constructor(world: Pick<TestRuntime, 'clock' | 'broker' | 'runtime'>, parts: TestRuntimeParts) {
    this.clock = world.clock;
    this.broker = world.broker;
    this.runtime = world.runtime;
    this.#parts = parts;
  }

  /**
   * Publishes as another service does: past the runtime, its plugins and injected faults; also to topics without handlers.
   * A `topic()` checks the payload by its schema. To a name anything goes that its codec (of a handler of the topic, else
   * JSON) can write: what others send may be wrong. Handlers begin at once: look at what they did after `settled`.
   * @throws PulseworkError PUBLISH_REFUSED; TransportError.
   */
  publish(topic: string, payload: unknown, options?: MessageOptions): Promise<MessageId>;
  publish<In>(topic: Topic<In>, payload: In, options?: MessageOptions): Promise<MessageId>; // last: the compiler explains that one
  async publish(topic: string | Topic<never>, payload: unknown, options: MessageOptions = {}): Promise<MessageId> {
    const name = this.#fullName(topic);
    const target = isTopic(topic) ? topic : topicNamed(topic, { codec: this.#parts.reading.codecOf(name) });
    return this.broker.publish(name, await encodeMessage({ topic: target, payload, options }, this.clock));
  }

  /** Resolves when nothing more can happen before the clock moves: what was sent has arrived, and what runs waits for time. */
  async settled(): Promise<void> {
    const { activity } = this.#parts;
    for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
      const before = activity();
      await this.clock.advanceBy(0);
      if (activity() !== before) quiet = -1;
    }
  }

  /** Lets `ms` pass, and all that is due in that time happen. @param ms milliseconds, 0 or more. @throws ConfigurationError */
  async advanceBy(ms: number): Promise<void> {
    await this.settled();
    await this.clock.advanceBy(ms);
    await this.settled();
  }

  /** What became of each delivery so far, in the order of settlement; a failed one that waits for its next time is there too. */
  outcomes(): readonly TestOutcome[] {
    return this.#parts.reports.map((report) => this.#parts.reading.outcome(report));
  }

  /**
   * The dead letters of all handlers of a topic, in the order in which they were stored.
   * @throws ConfigurationError when no handler listens to the topic.
   */
  deadLetters(topic: string | Topic<never>): readonly TestDeadLetter[] {
    return this.#parts.reading.deadLetters(this.#fullName(topic));
  }

  /**
   * All messages that a topic has ever held: what handlers have sent, and what was published to it.
   * @throws ConfigurationError when nothing was published to the topic, and no handler takes from it or says that it `publishes` there.
   */
  published(topic: string | Topic<never>): readonly TestMessage[] {
    return this.#parts.reading.published(this.#fullName(topic), isTopic(topic) ? topic.codec : undefined);
  }

  /**
   * Ends the runtime; what still runs is interrupted. Time goes on meanwhile: what never closes is waited for, each for the
   * runtime's `callTimeoutMs` of virtual time. Calling it twice is allowed.
   */
  async close(): Promise<void> {
    let closed = false;
    const closing = this.runtime.close().finally(() => (closed = true));
    const { callTimeoutMs } = this.#parts;
    const stepMs = Math.max(seconds(1), callTimeoutMs / STEPS_PER_CALL);
    const maxMs = Math.min(MAX_DURATION_MS, hours(1) + callTimeoutMs * CALLS_OF_CLOSE);
    await this.clock.advanceUntil(() => closed, { stepMs, maxMs });
    await closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #fullName(topic: string | Topic<never>): string {
    return withoutPartition(this.#parts.fullName(isTopic(topic) ? topic.name : topic));
  }
}
