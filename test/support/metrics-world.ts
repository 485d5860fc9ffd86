// Runtimes on one embedded broker in which everything happens that a metric tells of: some of it lasts from the start on,
// the rest happens once more in each round.
import type { MeterProvider } from '@opentelemetry/api';
import { EmbeddedBroker, embedded, memoryMetadataStore } from '../../src/embedded.js';
import {
  Runtime,
  TransportError,
  consoleLogger,
  defer,
  defineHandler,
  fixedBackoff,
  minutes,
  poison,
  retry,
  retryAfter,
  skip,
  success,
  systemClock,
  textCodec,
  topic,
} from '../../src/index.js';
import type { Clock, Delivery, Outcome, Plugin, Transport } from '../../src/index.js';
import { openTelemetry } from '../../src/otel.js';
import { memoryOutbox } from '../../src/testing.js';
import type { Flow } from '../../src/workflow.js';
import { Workflows, defineWorkflow, memoryWorkflowStore } from '../../src/workflow.js';
import type { MemoryOutbox } from '../../src/testing.js';

const texts = (name: string) => topic(name, { codec: textCodec });
const orders = texts('orders');
const receipts = texts('receipts');
/** Its follow-ups and dead letters find no broker. */
const cutOff = texts('cut-off');
const letters = texts('letters');
const ledger = texts('ledger');
const hanging = texts('hanging');
const banking = texts('banking');
const quiet = texts('quiet');
const together = texts('together');
const once = texts('once');

class CardDeclined extends Error {}
class BankDown extends Error {}

const SOON = { redelivery: { backoff: fixedBackoff(20), maxDeliveries: 2 } };
const silent = consoleLogger({ level: 'silent' });

export interface MetricsWorldOptions {
  readonly meterProvider: MeterProvider;
  /** @default the system's */
  readonly clock?: Clock | undefined;
  readonly plugins?: readonly Plugin[] | undefined;
}

export class MetricsWorld {
  readonly #options: MetricsWorldOptions;
  readonly #broker: EmbeddedBroker;
  readonly #deferred = new Set<string>();
  #runtime: Runtime | undefined;
  #workflows: Workflows | undefined;
  #rounds = 0;

  constructor(options: MetricsWorldOptions) {
    this.#options = options;
    const transactions = { store: memoryMetadataStore() };
    this.#broker = new EmbeddedBroker({ clock: options.clock ?? systemClock, transactions });
  }

  /** Also begins what lasts: runs, waits, blocked keys, pauses, an outage. */
  async start(): Promise<void> {
    const transport = refusing(embedded({ broker: this.#broker }));
    const outbox = memoryOutbox({ clock: this.#options.clock });
    const runtime = await this.#start(transport, this.#handlers(), this.#options.plugins ?? [], outbox);
    this.#runtime = runtime;
    this.#workflows = await Workflows.start({ runtime, store: memoryWorkflowStore(), definitions: [trial, standing] });
    await this.#workflows.start(standing, { id: 'one', input: null });
    const tx = outbox.begin();
    outbox.add(tx, texts('cut-off-receipts').message('waits'), texts('refused-receipts').message('waits for a person'));
    tx.commit();
    runtime.subscription('s', quiet.name).pause();
    await this.#publish(quiet, 'waits for the operator');
    await this.#publish(hanging, 'runs');
    await this.#publish(letters, 'takes the only place');
    await this.#publish(orders, 'later');
    await this.#publish(banking, 'finds the bank down');
    await this.#publish(cutOff, 'poison');
    for (const payload of ['poison', 'waits behind it']) await this.#publish(ledger, payload, 'account');
  }

  /** One more of everything that ends. */
  async round(): Promise<void> {
    for (const payload of ['success', 'retry', 'exhausted', 'poison', 'skip', 'defer'])
      await this.#publish(orders, payload);
    await this.#publish(letters, 'again by letter');
    await this.#publish(cutOff, 'success');
    for (const payload of ['one', 'two']) await this.#publish(together, payload);
    await this.#publish(once, 'in a transaction');
    await this.#workflows?.start(trial, { id: `trial-${++this.#rounds}`, input: null });
    await this.#workflows?.handle(trial, `trial-${this.#rounds}`).result();
    await this.#cutShort();
  }

  async close(): Promise<void> {
    await this.#runtime?.close();
  }

  /** A runtime of its own, drained while its handler runs. */
  async #cutShort(): Promise<void> {
    let started: () => void = () => undefined;
    const running = new Promise<void>((resolve) => (started = resolve));
    const handler = defineHandler({
      name: 'cut-short',
      source: hanging,
      subscription: 'cut-short',
      handle: ({ signal }) => (started(), untilAborted(signal)),
    });
    const runtime = await this.#start(embedded({ clock: this.#options.clock }), [handler], []);
    await runtime.publisher(hanging).publish('cut short');
    await running;
    await runtime.drain({ deadlineMs: 20 });
  }

  #start(
    transport: Transport,
    handlers: readonly ReturnType<typeof defineHandler>[],
    plugins: readonly Plugin[],
    outbox?: MemoryOutbox,
  ): Promise<Runtime> {
    const { meterProvider } = this.#options;
    const telemetry = openTelemetry({ meterProvider, acknowledgeDuration: true });
    return Runtime.start({ transport, handlers, plugins, telemetry, outbox, logger: silent });
  }

  #publish(to: typeof orders, payload: string, key?: string): Promise<unknown> {
    return this.#runtime?.publisher(to).publish(payload, { key }) ?? Promise.reject(new Error('not started'));
  }

  #handlers() {
    // What waits behind a message waits here, as on the brokers of today.
    const inPlace = { ordering: 'key', orderedNegativeAck: 'disabled' } as const;
    const ordered = { type: 'key-shared', ...inPlace, onDeadLetter: 'block-key' } as const;
    const outage = [{ dependency: 'bank', errors: [BankDown], retryAfterMs: minutes(10) }];
    const batch = { maxMessages: 2, maxWaitMs: 100 };
    const of = { subscription: 's' };
    return [
      defineHandler({ name: 'charge', source: orders, ...of, ...SOON, handle: (order) => this.#charge(order) }),
      defineHandler({ name: 'receipts', source: receipts, ...of, handle: () => success() }),
      defineHandler({ name: 'cut-off', source: cutOff, ...of, ...SOON, handle: cutOffOutcome }),
      defineHandler({ name: 'letters', source: letters, ...of, retryTopic: true, maxHeld: 1, handle: byLetter }),
      defineHandler({ name: 'ledger', source: ledger, ...of, ...ordered, handle: () => poison('no such account') }),
      defineHandler({ name: 'hanging', source: hanging, ...of, handle: ({ signal }) => untilAborted(signal) }),
      defineHandler({ name: 'banking', source: banking, ...of, outage, handle: bankDown }),
      defineHandler({ name: 'quiet', source: quiet, ...of, handle: () => success() }),
      defineHandler({
        name: 'once',
        source: once,
        ...of,
        transactional: true,
        handle: () => success(receipts.message('once')),
      }),
      defineHandler({ name: 'together', source: together, ...of, batch, handle: (all) => all.map(() => success()) }),
    ];
  }

  #charge({ payload, attempt, originId }: Delivery<string>): Outcome {
    switch (payload) {
      case 'success':
        return success(receipts.message('paid'));
      case 'retry':
        return attempt === 1 ? retry('busy') : success();
      case 'exhausted':
        throw new CardDeclined('declined again');
      case 'poison':
        return poison('no such customer');
      case 'skip':
        return skip('nothing to pay');
      case 'defer':
        if (this.#deferred.has(originId)) return success();
        this.#deferred.add(originId);
        return defer(20, 'not yet');
      default:
        return defer(minutes(10), payload);
    }
  }
}

const anything = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const;

/** A step that needs a second attempt, and a sleep. */
const trial = defineWorkflow({
  name: 'trial',
  version: 1,
  input: anything,
  async run(flow: Flow) {
    const busy = ({ attempt }: { readonly attempt: number }): void => {
      if (attempt === 1) throw new Error('busy');
    };
    await flow.step('charge', busy, SOON);
    await flow.sleep('nap', 20);
  },
});

/** Its step runs for as long as the process does. */
const standing = defineWorkflow({
  name: 'standing',
  version: 1,
  input: anything,
  async run(flow: Flow) {
    await flow.step(
      'stand',
      ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('it is over')))),
    );
  },
});

function cutOffOutcome({ payload }: Delivery<string>): Outcome {
  return payload === 'poison' ? poison('its dead letter is refused') : success(texts('cut-off-receipts').message('x'));
}

function byLetter({ payload, attempt }: Delivery<string>): Outcome {
  if (payload === 'takes the only place') return retryAfter(minutes(10), new CardDeclined('declined'));
  return attempt === 1 ? retryAfter(20, 'again by letter') : success();
}

function bankDown(): never {
  throw new BankDown('no connection');
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

/** Refuses what is published to topics by their names: in passing, or for good. */
function refusing(inner: Transport): Transport {
  return {
    name: inner.name,
    capabilities: inner.capabilities,
    maxMessageBytes: inner.maxMessageBytes,
    clock: inner.clock,
    subscribe: (spec) => inner.subscribe(spec),
    ...(inner.newTransaction !== undefined && { newTransaction: inner.newTransaction.bind(inner) }),
    close: () => inner.close(),
    publisher: async (name, options) => {
      const publisher = await inner.publisher(name, options);
      const isCutOff = name.includes('cut-off-');
      if (!isCutOff && !name.includes('refused-')) return publisher;
      const lost = new TransportError('CONNECTION_LOST', 'nobody is there', { retriable: true });
      const refused = new TransportError('TOPIC_TERMINATED', 'it takes no more', { retriable: false });
      return {
        topic: publisher.topic,
        nextSequenceId: () => publisher.nextSequenceId(),
        publish: () => Promise.reject(isCutOff ? lost : refused),
        close: () => publisher.close(),
      };
    },
  };
}
