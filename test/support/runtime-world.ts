// A world for scenario tests: one embedded broker on virtual time, runtimes on it, and what they left behind.
import type { ReceivedMessage } from '../../src/core/message.js';
import type { LogFields, Logger, Runtime, RuntimeOptions, SettlementReport } from '../../src/index.js';
import { expect, onTestFinished } from 'vitest';
import { Runtime as PulseworkRuntime } from '../../src/index.js';
import { EmbeddedBroker, embedded } from '../../src/embedded.js';
import { FakeClock, RecordingTelemetry } from '../../src/testing.js';
import { readTopic } from '../../src/testing/read-topic.js';

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: LogFields;
}

export class World {
  readonly clock = new FakeClock();
  readonly broker = new EmbeddedBroker({ clock: this.clock });
  readonly log: LogLine[] = [];
  readonly telemetry = new RecordingTelemetry();
  readonly reports: readonly SettlementReport[] = this.telemetry.reports;
  readonly #runtimes: Runtime[] = [];
  #readers = 0;

  /** Set where handlers never end, or a process dies: what was told to begin then has no end. */
  endsEarly = false;

  constructor() {
    onTestFinished(() => {
      const closed = this.#runtimes.length > 0 && this.#runtimes.every(({ state }) => state === 'closed');
      const unfinished = closed && !this.endsEarly ? this.telemetry.open : [];
      expect([this.telemetry.problems, unfinished]).toEqual([[], []]);
    });
  }

  get logger(): Logger {
    const at =
      (level: LogLine['level']) =>
      (message: string, fields: LogFields = {}) =>
        void this.log.push({ level, message, fields });
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  }

  async start(options: Partial<RuntimeOptions> & Pick<RuntimeOptions, 'handlers'>): Promise<Runtime> {
    const runtime = await PulseworkRuntime.start({
      transport: embedded({ broker: this.broker }),
      clock: this.clock,
      logger: this.logger,
      random: () => 0.5,
      telemetry: this.telemetry,
      ...options,
    });
    this.#runtimes.push(runtime);
    return runtime;
  }

  /** Publishes JSON as an outside producer does. */
  async publish(topic: string, value: unknown, rest: Partial<ReceivedMessage> = {}): Promise<void> {
    await this.broker.publish(topic, { payload: Buffer.from(JSON.stringify(value)), properties: {}, ...rest });
  }

  async publishBatch(
    topic: string,
    values: readonly unknown[],
    rest: Pick<ReceivedMessage, 'key'> = {},
  ): Promise<void> {
    await this.broker.publishBatch(
      topic,
      values.map((value) => ({ payload: Buffer.from(JSON.stringify(value)), properties: {}, ...rest })),
    );
  }

  /** Everything a topic holds for a subscription that begins now, in order. */
  read(topic: string): Promise<ReceivedMessage[]> {
    return readTopic(this.broker, this.clock, topic, `reader-${++this.#readers}`);
  }

  deadLetters(topic: string, subscription: string): Promise<ReceivedMessage[]> {
    return this.read(`persistent://public/default/${topic}-${subscription}-DLQ`);
  }

  /** Messages of the subscription that are not acknowledged. */
  backlog(topic: string, subscription: string): number {
    return this.broker.stats(topic).subscriptions.get(subscription)?.backlog ?? 0;
  }

  /** Drains in virtual time and gives the report. */
  async drain(runtime: Runtime, deadlineMs?: number): Promise<Awaited<ReturnType<Runtime['drain']>>> {
    const draining = runtime.drain({ deadlineMs });
    await this.clock.advanceBy(40_000);
    return draining;
  }

  async end(): Promise<void> {
    for (const runtime of this.#runtimes) if (runtime.state === 'running') await this.drain(runtime, 0);
  }
}

export function payloadOf(message: ReceivedMessage): unknown {
  return JSON.parse(Buffer.from(message.payload ?? []).toString()) as unknown;
}
