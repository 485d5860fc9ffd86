// One life of a service on a durable embedded broker: it publishes jobs and makes results of them in transactions, as its plan says,
// some of which it aborts. What it asks for and is answered it tells, a line each, at once.
import { setTimeout as sleep } from 'node:timers/promises';
import { PulseworkError } from 'pulsework';
import { embedded } from 'pulsework/embedded';
import type { EmbeddedTransport } from 'pulsework/embedded';
import { sqliteStore } from 'pulsework/sqlite';
import type { Transaction } from '../../../src/ports/transaction.js';
import type { MetadataStore } from '../../../src/ports/metadata-store.js';
import { scattered } from '../seeded.js';
import type { Job, JobSource } from './kills-consumers.js';
import { jobSource } from './kills-consumers.js';
import type { InputPlan, KillsSettings } from './kills-settings.js';
import { SWEEPS, TRANSACTION_MS, WORKERS } from './kills-settings.js';

const GIVE_UP_MS = 30_000;
const LOOK_MS = 5;
/** Of a transaction that has just ended, and of those that told of it. */
const RECORDS_OF_THE_LAST = 4;
/** Numbers, and what became of messages that are still there. */
const STAYS = /^\/txn\/(tc-seq|segment-state)\//;

const encoded = (line: string) => ({ payload: new TextEncoder().encode(line), properties: {}, key: line });

export class KillsLife {
  readonly #settings: KillsSettings;
  readonly #tell: (line: string) => void;
  readonly #next: () => number;
  readonly #metadata: MetadataStore;
  readonly #transport: EmbeddedTransport;

  constructor(settings: KillsSettings, tell: (line: string) => void) {
    this.#settings = settings;
    this.#tell = tell;
    this.#next = scattered(settings.seed * 1_000 + settings.life);
    const store = sqliteStore({ dir: settings.dir });
    this.#metadata = store.metadata;
    // A consumer that becomes active begins at once.
    const options = { maxLedgerEntries: settings.plan.maxLedgerEntries, activeConsumerFailoverDelayMs: 0 };
    this.#transport = embedded({ store, transactions: SWEEPS, options });
  }

  async open(): Promise<void> {
    this.#tell('begins');
    const { broker } = this.#transport;
    await broker.open();
    this.#tell('open');
    const { inputs, outputs } = this.#settings.plan;
    for (const { name } of inputs) broker.createSubscription(name, WORKERS);
    for (const name of outputs) broker.createSubscription(name, 'all of it');
    await broker.written();
  }

  /** All consumers, and the transactions on each; they work until the end. */
  work(): void {
    for (const [at, input] of this.#settings.plan.inputs.entries()) {
      for (let consumer = 0; consumer < input.consumers; consumer++) {
        const name = `${this.#settings.life}/${at}/${consumer}`;
        void jobSource(this.#transport, input, name).then((source) => this.#consume(source, input, name));
      }
    }
  }

  async publishJobs(): Promise<void> {
    const { plan, life } = this.#settings;
    await Promise.all(
      plan.inputs.map(async ({ name, batch }, input) => {
        for (let at = 0; at < plan.jobs; at += batch) {
          const jobs = Array.from(
            { length: Math.min(batch, plan.jobs - at) },
            (_, index) => `${input}.${life}.${at + index}`,
          );
          await this.#publish(name, jobs);
          if (this.#next() < 0.3) await sleep(this.#next() * 5);
        }
      }),
    );
  }

  /** Once nothing is left to be done. */
  async idle(): Promise<void> {
    const { inputs } = this.#settings.plan;
    const left = (): number => inputs.reduce((sum, { name }) => sum + this.#backlog(name, WORKERS), 0);
    await this.#until(
      async () => left() === 0 || sleep(LOOK_MS, false),
      () => `${left()} jobs are left`,
    );
  }

  /** Once what is recorded of transactions is collected. */
  async collected(): Promise<void> {
    const left = async (): Promise<readonly string[]> =>
      (await this.#metadata.scan({})).map(({ path }) => path).filter((path) => !STAYS.test(path));
    let records: readonly string[] = [];
    await this.#until(
      async () => {
        // One that has just begun makes the broker look after what others left.
        await (await this.#transport.newTransaction({ timeoutMs: TRANSACTION_MS })).abort();
        await sleep(SWEEPS.retentionMs + SWEEPS.collectionIntervalMs);
        records = await left();
        return records.length <= RECORDS_OF_THE_LAST;
      },
      () => `${records.length} records are left: ${records.slice(0, 5).join(', ')}`,
    );
  }

  /** What a reader sees that begins at the first message, a line each. */
  async tellAll(output: string): Promise<void> {
    const name = `reader ${this.#settings.life}`;
    const reader = await this.#transport.subscribe({
      ...{ topics: [this.#transport.broker.fullName(output)], subscription: name, type: 'exclusive' },
      ...{ initialPosition: 'earliest', prefetch: 100, consumerName: name },
    });
    const isRead = async (): Promise<boolean> => {
      if (this.#backlog(output, name) === 0) return true;
      const message = await reader.receive(AbortSignal.timeout(LOOK_MS));
      if (message === undefined) return false;
      this.#tell(`saw ${output} ${new TextDecoder().decode(message.payload ?? undefined)}`);
      await reader.acknowledgeCumulative(message.id);
      return false;
    };
    await this.#until(isRead, () => `${output} does not show what it has`);
    await reader.close();
  }

  async close(): Promise<void> {
    await this.#transport.close();
    this.#tell('closed');
  }

  async #publish(topic: string, jobs: readonly string[]): Promise<void> {
    const { broker } = this.#transport;
    this.#tell(`send ${jobs.join(',')}`);
    const [only] = jobs;
    if (jobs.length > 1) await broker.publishBatch(topic, jobs.map(encoded));
    else if (only !== undefined) await broker.publish(topic, encoded(only));
    this.#tell(`sent ${jobs.join(',')}`);
  }

  #consume(source: JobSource, input: InputPlan, name: string): void {
    let taking: Promise<unknown> = Promise.resolve();
    const take = (): Promise<readonly Job[] | undefined> => {
      const taken = taking.then(() => source.take(input.perTransaction));
      taking = taken.catch(() => undefined);
      return taken;
    };
    const loop = async (worker: number): Promise<void> => {
      for (let tried = 0; ; tried++) {
        const jobs = await take();
        if (jobs === undefined) return;
        const isDone = await this.#attempt(source, jobs, { input, tx: `${name}/${worker}/${tried}` });
        // Whoever closes takes everything along.
        if (isDone !== true) await source.notDone(jobs, isDone === 'aborted').catch(() => undefined);
      }
    };
    for (let worker = 0; worker < input.atOnce; worker++) void loop(worker).catch(() => undefined);
  }

  async #attempt(
    source: JobSource,
    jobs: readonly Job[],
    { input, tx }: { readonly input: InputPlan; readonly tx: string },
  ): Promise<true | 'aborted' | 'unknown'> {
    const { outputs } = this.#settings.plan;
    const items = jobs.flatMap(({ text }) =>
      Array.from({ length: 1 + Math.floor(this.#next() * input.results) }, (_, at) => {
        const output = outputs[Math.floor(this.#next() * outputs.length)] ?? '';
        return { output, item: `${text}.${at}` };
      }),
    );
    const transaction = await this.#transport.newTransaction({ timeoutMs: TRANSACTION_MS });
    this.#tell(`try ${tx} ${items.map(({ output, item }) => `${output}:${item}`).join(',')}`);
    try {
      await Promise.all(items.map(({ output, item }) => this.#publishIn(transaction, output, `${tx} ${item}`)));
      await source.acknowledgeIn(transaction, jobs);
      const isAborted = this.#next() < input.aborts;
      await (isAborted ? transaction.abort() : transaction.commit());
      this.#tell(`${isAborted ? 'aborted' : 'committed'} ${tx}`);
      return isAborted ? 'aborted' : true;
    } catch (error) {
      this.#tell(`failed ${tx} ${error instanceof PulseworkError ? error.code : String(error)}`);
      // Else all that is published later waits for its time.
      await transaction.abort().catch(() => undefined);
      return 'unknown';
    }
  }

  async #publishIn(transaction: Transaction, output: string, line: string): Promise<void> {
    const publisher = await this.#transport.publisher(output);
    await publisher.publish(encoded(line), publisher.nextSequenceId(), { transaction });
    await publisher.close();
  }

  #backlog(topic: string, subscription: string): number {
    return this.#transport.broker.stats(topic).subscriptions.get(subscription)?.backlog ?? 0;
  }

  async #until(holds: () => boolean | Promise<boolean>, what: () => string): Promise<void> {
    const giveUpAt = Date.now() + GIVE_UP_MS;
    while (!(await holds())) {
      if (Date.now() > giveUpAt) {
        this.#tell(`late ${what()}`);
        return;
      }
      await sleep(0);
    }
  }
}
