// The test kit for handlers: a runtime on an embedded broker and a clock that stands still until the test moves it. Equal
// tests do the same in each run. Handlers must await nothing but memory and this clock: see FakeClock.
import { EmbeddedBroker } from '../broker/embedded-broker.js';
import { describeValue } from '../core/errors.js';
import type { MessageOptions } from '../core/message.js';
import type { MessageId } from '../core/message-id.js';
import { OptionChecker, seconds } from '../core/options.js';
import type { Topic } from '../core/topic.js';
import { isTopic, topic as topicNamed } from '../core/topic.js';
import { withoutPartition } from '../core/topic-name.js';
import type { Plugin } from '../ports/plugin.js';
import type { SettlementReport } from '../ports/telemetry.js';
import { encodeMessage } from '../runtime/message-encoder.js';
import type { RuntimeOptions } from '../runtime/runtime-options.js';
import { RUNTIME_OPTION_NAMES } from '../runtime/runtime-options.js';
import { Runtime } from '../runtime/runtime.js';
import { planStart } from '../runtime/start-checks.js';
import { consoleLogger } from '../system/console-logger.js';
import { embedded } from '../transports/embedded/embedded-transport.js';
import { FakeClock } from './fake-clock.js';
import type { TestDeadLetter, TestMessage, TestOutcome } from './test-reading.js';
import { TestReading } from './test-reading.js';
import { TopicRecord } from './topic-record.js';

/** Those of `Runtime.start` without a transport and a clock. Without a `logger` nothing is logged; `random` gives 0.5. */
export interface TestRuntimeOptions extends Omit<RuntimeOptions, 'transport' | 'clock'> {
  /** How many partitions topics have, by name. @default none */
  readonly partitions?: Readonly<Record<string, number>> | undefined;
}

/** Turns of the event loop in which nothing happens, after which nothing more will: a handler may wait for one or two. */
const QUIET_TURNS = 3;

/** Options of `Runtime.start` that a test must not give. */
const KIT_OWNS: readonly string[] = ['transport', 'clock'];

/**
 * Starts a runtime with these handlers on an embedded broker and a `FakeClock`.
 * @param given the handlers, or options of `Runtime.start` with them.
 * @throws ConfigurationError and PulseworkError as `Runtime.start`.
 */
export async function testRuntime(given: RuntimeOptions['handlers'] | TestRuntimeOptions): Promise<TestRuntime> {
  const { partitions = {}, ...own } = checkedOptions(given);
  const clock = new FakeClock();
  const record = new TopicRecord();
  const broker = new EmbeddedBroker({ clock, store: record });
  const reports: SettlementReport[] = [];
  const watcher: Plugin = { name: 'pulsework-test-runtime', onSettled: (report) => void reports.push(report) };
  const options: RuntimeOptions = {
    logger: consoleLogger({ level: 'silent' }),
    random: () => 0.5,
    ...own,
    plugins: withWatcher(own.plugins, watcher),
    transport: embedded({ broker }),
  };
  const { plans, fullName } = planStart(options);
  for (const [name, count] of Object.entries(partitions)) broker.createPartitionedTopic(fullName(name), count);
  const runtime = await Runtime.start(options);
  const reading = new TestReading(plans, record);
  const activity = (): number => record.activity + reports.length;
  return new TestRuntime({ clock, broker, runtime }, { reading, reports, fullName, activity });
}

interface TestRuntimeParts {
  readonly reading: TestReading;
  readonly reports: readonly SettlementReport[];
  readonly fullName: (name: string) => string;
  /** Grows with everything that happens. */
  readonly activity: () => number;
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

  /** Ends the runtime; what still runs is interrupted. Calling it twice is allowed. */
  async close(): Promise<void> {
    let closed = false;
    const closing = this.runtime.close().finally(() => (closed = true));
    await this.clock.advanceUntil(() => closed, { stepMs: seconds(1) });
    await closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #fullName(topic: string | Topic<never>): string {
    return withoutPartition(this.#parts.fullName(isTopic(topic) ? topic.name : topic));
  }
}

function checkedOptions(given: unknown): TestRuntimeOptions {
  if (Array.isArray(given)) return { handlers: given as RuntimeOptions['handlers'] };
  const check = new OptionChecker('testRuntime');
  if (typeof given !== 'object' || given === null)
    check.problem(`it takes a list of handlers, or options with one, got ${describeValue(given)}`);
  else if ('handle' in given) check.problem('it takes a list of handlers, got one handler; put it in brackets');
  else {
    const known = [...RUNTIME_OPTION_NAMES, 'partitions'];
    const named = known.filter((name) => !KIT_OWNS.includes(name));
    check.unknownOptions(given, known, '', named);
  }
  for (const name of KIT_OWNS)
    if ((given as Readonly<Record<string, unknown>> | null)?.[name] !== undefined)
      check.problem(`"${name}" is the kit's own; leave it out`);
  const { partitions } = (given ?? {}) as { readonly partitions?: unknown };
  if (partitions !== undefined && check.object('partitions', partitions, '{ orders: 3 }'))
    for (const [name, count] of Object.entries(partitions)) check.positiveInteger(`partitions.${name}`, count);
  check.throwIfAny();
  return given as TestRuntimeOptions;
}

/** What is no list is left for the start to refuse. */
function withWatcher(plugins: unknown, watcher: Plugin): RuntimeOptions['plugins'] {
  const given = plugins ?? [];
  return Array.isArray(given) ? [...(given as readonly Plugin[]), watcher] : (given as RuntimeOptions['plugins']);
}
