// Runs one program: a broker on virtual time that dies and comes back, clients on it, and at the end everything that must be in
// effect by then.
import { PulseworkError } from '../../../src/core/errors.js';
import type { TransactionId } from '../../../src/core/transaction-id.js';
import { transactionKey } from '../../../src/core/transaction-id.js';
import { memoryMetadataStore } from '../../../src/stores/memory/memory-metadata-store.js';
import { FakeClock } from '../../../src/testing.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { scattered } from '../seeded.js';
import type { Disk } from './model-broker.js';
import { ModelBroker, topicName } from './model-broker.js';
import { microtasks } from './process-life.js';
import type { Answer, Asked, Seen } from './observer.js';
import { Observer } from './observer.js';
import type { Act, Program } from './program.js';
import { isCalm } from './program.js';
import type { Reader, SubscriptionPlace } from './reader.js';
import { StoredTopics } from './stored-topics.js';

/** As its client sees it. */
interface ClientTransaction {
  readonly id: TransactionId;
  readonly key: string;
  underWay: number;
  /** Something in it failed, or nobody knows: it is aborted instead of committed (T-03). */
  hasFailed: boolean;
}

type ReaderAct = Extract<Act, { readonly consumer: number }>;

/** What a client may be told where nothing is wrong but what was to go wrong. */
const EXPECTED_CODES: readonly string[] = [
  ...['BROKER_ERROR', 'CONNECTION_LOST', 'TRANSACTION_CONFLICT', 'TRANSACTION_ENDED', 'ALREADY_CLOSED'],
  ...['STORE_FAILED', 'STORE_FULL'],
];
const MOST_TRANSACTIONS = 6;
const MOST_STARTS = 50;

export class ModelWorld {
  readonly observer: Observer;
  readonly clock = new FakeClock();
  readonly disk: Disk = { topics: new StoredTopics(), metadata: memoryMetadataStore() };
  readonly subscriptions: readonly SubscriptionPlace[];
  readonly #program: Program;
  readonly #isCalm: boolean;
  readonly #next: () => number;
  #living: ModelBroker;
  /** For the lives to come. */
  readonly #crashes: { readonly call: number; readonly isAfter: boolean }[] = [];
  #transactions: ClientTransaction[] = [];
  #sequence = 0;
  #readers = 0;
  #deaths = 0;

  constructor(program: Program) {
    const { setting } = program;
    this.#program = program;
    this.#isCalm = isCalm(program);
    this.#next = scattered(setting.seed + 1);
    this.observer = new Observer(() => this.clock.now());
    this.subscriptions = setting.topics.flatMap((types, topic) =>
      types.map((type, at) => ({ key: `t${topic}/s${at}`, topic: topicName(topic), name: `s${at}`, type })),
    );
    this.#living = this.#newLife();
  }

  get living(): ModelBroker {
    return this.#living;
  }

  /** Orderly ends too. */
  get deaths(): number {
    return this.#deaths;
  }

  async start(): Promise<void> {
    await this.disk.metadata.open();
    await this.#open();
    for (const { topic, name } of this.subscriptions) this.#living.broker.createSubscription(topic, name);
    await this.#living.broker.written();
    this.joinAll();
    await this.rest();
  }

  async run(): Promise<void> {
    for (const { ticks, ...act } of this.#program.steps) {
      await this.#act(act);
      if (ticks === undefined) await this.rest();
      else await microtasks(ticks);
      if (this.#living.life.isOver) await this.reborn();
    }
  }

  /** Until nothing happens any more without a call or time. */
  async rest(): Promise<void> {
    await settlePromises();
    this.observer.rested();
  }

  async pass(ms: number): Promise<void> {
    await this.clock.advanceBy(ms);
    await this.rest();
  }

  /** Nothing goes wrong any more. */
  async calm(): Promise<void> {
    this.#crashes.length = 0;
    this.#living.life.calm();
    await this.rest();
    if (this.#living.life.isOver) await this.reborn();
  }

  /** The process is dead; the next one takes what it left. */
  async reborn(): Promise<void> {
    await this.rest();
    this.#deaths += 1;
    this.observer.tell('the process is dead, the next one begins');
    this.#living.life.end();
    for (const transaction of this.#transactions) {
      if (transaction.underWay > 0) transaction.hasFailed = true;
      transaction.underWay = 0;
    }
    this.#living = this.#newLife();
    await this.#open();
    this.joinAll();
    await this.rest();
  }

  joinAll(): void {
    for (const place of this.subscriptions) if (this.#living.readersOf(place).length === 0) this.#join(place);
  }

  /** Clients do not leave what they have begun. */
  async abortAll(): Promise<void> {
    for (const transaction of [...this.#transactions]) await this.#end(transaction, 'abort', false);
    await this.rest();
  }

  #newLife(): ModelBroker {
    const { clock, disk, observer } = this;
    const living = new ModelBroker({ setting: this.#program.setting, clock, disk, observer, next: this.#next });
    const crash = this.#crashes.shift();
    if (crash !== undefined) living.life.crashAt(crash.call, crash.isAfter);
    return living;
  }

  async #open(): Promise<void> {
    for (let left = MOST_STARTS; left > 0; left--) {
      const { broker, life } = this.#living;
      broker.open().catch((error: unknown) => this.#unknown(error));
      await this.rest();
      if (broker.isOpen && !life.isOver) return;
      if (this.#living.life.isOver) {
        this.#deaths += 1;
        this.observer.tell('the process is dead before its broker is open');
        this.#living = this.#newLife();
      }
    }
    throw new Error('the broker does not open');
  }

  async #act(act: Act): Promise<void> {
    if ('consumer' in act) {
      this.#asReader(act);
      return;
    }
    switch (act.do) {
      case 'pass':
        return this.pass(act.ms);
      case 'unload':
      case 'restart':
      case 'close':
        return this.#interrupt(act);
      case 'crash':
      case 'fault':
        this.#disturb(act);
        return;
      case 'begin':
        this.#begin(act.timeoutMs);
        return;
      case 'commit':
      case 'abort': {
        const transaction = chosen(this.#transactions, act.at);
        return transaction && this.#end(transaction, act.do, act.rude);
      }
      case 'publish':
        this.#publish(act);
        return;
      case 'join':
        this.#join(chosen(this.subscriptions, act.at));
    }
  }

  #asReader(act: ReaderAct): void {
    if (act.do === 'acknowledge') this.#acknowledge(act);
    else if (act.do === 'redeliver') this.#redeliver(act.consumer, act.at);
    else this.#leave(act.consumer);
  }

  async #interrupt(act: Extract<Act, { do: 'unload' | 'restart' | 'close' }>): Promise<void> {
    this.observer.tell(`the broker: ${act.do}`);
    if (act.do === 'close') return this.#close();
    const { broker } = this.#living;
    if (act.do === 'unload') broker.unload(topicName(act.at % this.#program.setting.topics.length));
    else broker.restart();
  }

  #disturb(act: Extract<Act, { do: 'crash' | 'fault' }>): void {
    const { call, isAfter } = act;
    this.observer.tell(`${act.do} at the ${call}. call from now on, ${isAfter ? 'behind' : 'before'} it`);
    if (act.do === 'fault') this.#living.life.failAt(call, isAfter);
    else if (!this.#living.life.crashAt(call, isAfter)) this.#crashes.push({ call, isAfter });
  }

  #begin(timeoutMs: number): void {
    if (this.#transactions.length >= MOST_TRANSACTIONS) return;
    this.#follow(this.#living.transactions.begin({ timeoutMs }), (_, id) => {
      if (id === undefined) return;
      const key = transactionKey(id);
      this.observer.tell(`${key} is begun`);
      this.#transactions.push({ id, key, underWay: 0, hasFailed: false });
    });
  }

  #publish({ at, transaction: number, batch }: Extract<Act, { do: 'publish' }>): void {
    const topic = topicName(at % this.#program.setting.topics.length);
    const transaction = number === undefined ? undefined : chosen(this.#transactions, number);
    const messages = Array.from({ length: Math.max(1, batch) }, () => this.observer.announce(topic, transaction?.key));
    const names = messages.map((message) => `m${message.number}`).join(' ');
    this.observer.tell(`${names} published to ${topic} in ${transaction?.key ?? 'no transaction'}`);
    const encoded = messages.map((message) => ({
      payload: new TextEncoder().encode(String(message.number)),
      properties: {},
      key: `k${message.number % 3}`,
    }));
    const producer = this.#living.producerOf(topic);
    const sequenceId = this.#sequence;
    this.#sequence += encoded.length;
    const call =
      batch === 0
        ? producer.publish(encoded[0]!, sequenceId, undefined, transaction?.key)
        : producer.publishBatch(encoded, sequenceId, transaction?.key);
    this.#followIn(transaction, call, (answer) => {
      // What the store refuses is not there.
      const receipt = answer === 'given' ? 'given' : 'refused';
      this.observer.tell(`${names}: ${receipt}`);
      for (const message of messages) message.receipt = receipt;
    });
  }

  #acknowledge(act: Extract<Act, { do: 'acknowledge' }>): void {
    const reader = chosen(this.#living.readers, act.consumer);
    const [message, held] = (reader && chosen([...(act.isAgain ? reader.got : reader.holds)], act.at)) ?? [];
    if (reader === undefined || message === undefined || held === undefined) return;
    const transaction = act.transaction === undefined ? undefined : chosen(this.#transactions, act.transaction);
    const isCumulative = act.isCumulative && reader.isSingle;
    const messages = isCumulative ? this.observer.upTo(message) : [message];
    const holding = [...reader.holds].filter(([each]) => messages.includes(each));
    const { key } = reader.place;
    const asked = this.observer.asked(key, messages, transaction?.key, isCumulative);
    const what = `m${message.number}${isCumulative ? ' and all before' : ''} on ${key} in ${transaction?.key ?? 'no transaction'}`;
    this.observer.tell(`${reader.name} acknowledges ${what}`);
    this.#followIn(transaction, acknowledged(reader, held, transaction?.key, isCumulative), (answer, _, error) => {
      this.observer.tell(`acknowledging ${what}: ${answer}`);
      this.observer.answered(asked, answer);
      if (answer === 'given') for (const [each, id] of holding) reader.acknowledged(each, id);
      if (codeOf(error) === 'TRANSACTION_CONFLICT' && !isCumulative) this.#checkConflict(message, key, asked);
    });
  }

  #checkConflict(message: Seen, key: string, asked: Asked): void {
    if (this.#isCalm) this.observer.checkConflict(message, key, asked);
  }

  async #end(transaction: ClientTransaction, wanted: 'commit' | 'abort', rude: boolean): Promise<void> {
    if (!rude) await this.rest();
    if (this.#living.life.isOver || (!rude && transaction.underWay > 0)) return;
    const action = wanted === 'commit' && transaction.hasFailed && !rude ? 'abort' : wanted;
    const { id, key } = transaction;
    this.observer.tell(`${action} of ${key}`);
    this.#follow(this.#living.transactions.end(id, action), (answer, _, error) => {
      this.observer.tell(`${action} of ${key}: ${answer}`);
      if (answer !== 'asked') this.#transactions = this.#transactions.filter((each) => each !== transaction);
      this.#checkEnd(key, action, answer, error);
    });
  }

  #checkEnd(key: string, action: 'commit' | 'abort', answer: Answer, error: unknown): void {
    const { state, hasHeader } = this.observer.transactions.get(key) ?? {};
    const wanted = action === 'commit' ? 'COMMITTED' : 'ABORTED';
    if (answer === 'given' && state !== wanted)
      this.observer.violated('decided', `${action} of ${key} was answered, and it is ${state}`);
    if (answer === 'refused' && (state === 'OPEN' || (hasHeader === true && state === wanted)))
      this.observer.violated('decided', `${action} of ${key} was refused (${String(error)}), and it is ${state}`);
  }

  #redeliver(consumer: number, at: number): void {
    const reader = chosen(this.#living.readers, consumer);
    const [message, id] = (reader && chosen([...reader.holds], at)) ?? [];
    if (reader === undefined || message === undefined || id === undefined) return;
    this.observer.tell(`${reader.name} asks m${message.number} back`);
    reader.givesBack(message);
    reader.handle.redeliver([id]);
  }

  #join(place: SubscriptionPlace | undefined): void {
    if (place === undefined) return;
    this.#readers += 1;
    this.#living.join(`r${this.#readers}`, place);
  }

  #leave(consumer: number): void {
    const reader = chosen(this.#living.readers, consumer);
    if (reader !== undefined) this.#living.leave(reader);
  }

  async #close(): Promise<void> {
    const { broker, life } = this.#living;
    const closing = broker.close().catch((error: unknown) => this.#unknown(error));
    const outcome = await Promise.race([closing, this.rest().then(() => 'late')]);
    if (outcome === 'late' && !life.isOver) this.observer.violated('stuck', 'the broker does not close');
    await this.rest();
    life.end();
  }

  #followIn(
    transaction: ClientTransaction | undefined,
    call: Promise<unknown>,
    answered: (answer: Answer, value: unknown, error: unknown) => void,
  ): void {
    if (transaction !== undefined) transaction.underWay += 1;
    const { life } = this.#living;
    this.#follow(call, (answer, value, error) => {
      answered(answer, value, error);
      if (transaction === undefined || life !== this.#living.life) return;
      transaction.underWay -= 1;
      if (answer !== 'given') transaction.hasFailed = true;
    });
  }

  /** What a dead process would have been told nobody knows. */
  #follow<T>(call: Promise<T>, answered: (answer: Answer, value: T | undefined, error: unknown) => void): void {
    const { life } = this.#living;
    call.then(
      (value) => {
        if (!life.isOver) answered('given', value, undefined);
      },
      (error: unknown) => {
        if (!life.isOver) answered(this.#unknown(error), undefined, error);
      },
    );
  }

  #unknown(error: unknown): Answer {
    const code = codeOf(error) ?? '';
    if (!EXPECTED_CODES.includes(code))
      this.observer.violated('error', error instanceof Error ? (error.stack ?? error.message) : String(error));
    return code === 'TRANSACTION_CONFLICT' || code === 'TRANSACTION_ENDED' ? 'refused' : 'asked';
  }
}

async function acknowledged(
  { handle }: Reader,
  id: Parameters<Reader['handle']['acknowledgeCumulative']>[0],
  transaction: string | undefined,
  isCumulative: boolean,
): Promise<void> {
  if (transaction === undefined) await (isCumulative ? handle.acknowledgeCumulative(id) : handle.acknowledge([id]));
  else if (isCumulative) await handle.acknowledgeCumulativeIn(transaction, id);
  else await handle.acknowledgeIn(transaction, [id]);
}

function codeOf(error: unknown): string | undefined {
  return error instanceof PulseworkError ? error.code : undefined;
}

function chosen<T>(all: readonly T[], at: number): T | undefined {
  return all[at % all.length];
}
