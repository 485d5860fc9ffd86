// An official client without a broker, that does what a test says when it says so: for moments that a real one passes by.
import type {
  OfficialClient,
  OfficialConsumer,
  OfficialConsumerConfig,
  OfficialMessage,
  OfficialMessageId,
  OfficialModule,
  OfficialProducer,
} from '../../../src/transports/pulsar/official-client.js';
import { ALL_ODD } from './odd-behaviours.js';
import { pulsarClientStandIn } from './stand-in.js';
import { StandInMessageId } from './stand-in-messages.js';

interface Call<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

/** What was called, each call until the test ends it. */
class Calls<T> {
  readonly open: Call<T>[] = [];
  #answers = false;

  made(): Promise<T> {
    if (this.#answers) return Promise.resolve(null as T);
    return new Promise((resolve, reject) => this.open.push({ resolve, reject }));
  }

  /** Ends what is under way, and whatever is called later at once. */
  answerAll(): void {
    this.#answers = true;
    for (const { resolve } of this.open) resolve(null as T);
  }
}

/** The message `text`, alone in entry `entryId` of ledger 1. */
export function arrival(entryId: number, text: string, redeliveryCount = 0): OfficialMessage {
  const known = { ledgerId: 1, entryId, partition: -1, batchIndex: -1, batchSize: 0, topic: '' };
  const id = new StandInMessageId(known, true, ALL_ODD);
  return {
    getTopicName: () => '',
    getProperties: () => [],
    getData: () => Buffer.from(text),
    getMessageId: () => id,
    getPublishTimestamp: () => 1,
    getEventTimestamp: () => 0,
    getRedeliveryCount: () => redeliveryCount,
    getPartitionKey: () => '',
    getOrderingKey: () => '',
    getProducerName: () => '',
  };
}

export class ScriptedConsumer implements OfficialConsumer {
  readonly config: OfficialConsumerConfig;
  readonly receives = new Calls<OfficialMessage>();
  readonly seeks = new Calls<unknown>();
  readonly closes = new Calls<unknown>();
  readonly acknowledged: string[] = [];
  readonly nacked: string[] = [];
  connected = true;

  constructor(config: OfficialConsumerConfig) {
    this.config = config;
  }

  /** Answers the `receive()` under way; the turn after it has passed when this resolves. */
  async deliver(entryId: number, text: string, redeliveryCount = 0): Promise<void> {
    this.receives.open.shift()?.resolve(arrival(entryId, text, redeliveryCount));
    await turn();
  }

  receive(): Promise<OfficialMessage> {
    return this.receives.made();
  }

  async acknowledgeId(id: OfficialMessageId): Promise<unknown> {
    this.acknowledged.push(String(id));
    return null;
  }

  async acknowledgeCumulativeId(): Promise<unknown> {
    return null;
  }

  negativeAcknowledgeId(id: OfficialMessageId): void {
    this.nacked.push(String(id));
  }

  seek(): Promise<unknown> {
    return this.seeks.made();
  }

  seekTimestamp(): Promise<unknown> {
    return this.seeks.made();
  }

  isConnected(): boolean {
    return this.connected;
  }

  close(): Promise<unknown> {
    return this.closes.made();
  }
}

export class ScriptedProducer implements OfficialProducer {
  readonly sends = new Calls<OfficialMessageId>();
  readonly flushes = new Calls<unknown>();
  readonly closes = new Calls<unknown>();
  /** Thrown by the next `send`, at once. */
  throwsNext: Error | undefined;

  send(): Promise<OfficialMessageId> {
    const error = this.throwsNext;
    this.throwsNext = undefined;
    if (error !== undefined) throw error;
    return this.sends.made();
  }

  flush(): Promise<unknown> {
    return this.flushes.made();
  }

  close(): Promise<unknown> {
    return this.closes.made();
  }
}

export class ScriptedClient implements OfficialClient {
  readonly consumers: ScriptedConsumer[] = [];
  readonly producers: ScriptedProducer[] = [];
  readonly closes = new Calls<unknown>();
  /** Until it resolves nothing is opened. */
  opens: Promise<unknown> = Promise.resolve();

  /** Whatever closes has closed. */
  letGo(): void {
    const made = [this, ...this.consumers, ...this.producers];
    for (const calls of [...made.map(({ closes }) => closes), ...this.producers.map(({ flushes }) => flushes)])
      calls.answerAll();
  }

  async subscribe(config: OfficialConsumerConfig): Promise<OfficialConsumer> {
    await this.opens;
    const consumer = new ScriptedConsumer(config);
    this.consumers.push(consumer);
    return consumer;
  }

  async createProducer(): Promise<OfficialProducer> {
    await this.opens;
    const producer = new ScriptedProducer();
    this.producers.push(producer);
    return producer;
  }

  async getPartitionsForTopic(topic: string): Promise<string[]> {
    return [topic];
  }

  close(): Promise<unknown> {
    return this.closes.made();
  }
}

/** A module whose `new Client(...)` is `client`. */
export function moduleMaking(client: ScriptedClient): OfficialModule {
  function Client(): ScriptedClient {
    return client;
  }
  Client.prototype = ScriptedClient.prototype;
  Client.setLogHandler = (): void => undefined;
  return { ...pulsarClientStandIn().module, Client: Client as unknown as OfficialModule['Client'] };
}

/** Everything that follows from what is settled now has happened. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
