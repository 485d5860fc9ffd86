// A subscription in the hands of a case: takes exactly as many messages as are wanted, and sees when none come.
import type { ReceivedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import type { Transaction } from '../../ports/transaction.js';
import type { Subscription } from '../../ports/transport.js';
import type { ConformanceWorld } from './conformance-world.js';
import { ConformanceFailure, expectEqual, textOf, textsOf } from './expectations.js';

/** How long nothing must come for a case to believe that nothing will. */
const QUIET_MS = 250;
const PATIENCE_MS = 20_000;

export class TestSubscription {
  /** The port itself. */
  readonly port: Subscription;
  readonly #world: ConformanceWorld;

  constructor(world: ConformanceWorld, port: Subscription) {
    this.#world = world;
    this.port = port;
  }

  /** The next message. */
  async takeOne(): Promise<ReceivedMessage> {
    const [message] = await this.take(1);
    if (message === undefined) throw new ConformanceFailure('no message came');
    return message;
  }

  /** The next `count` messages, in the order of their arrival. */
  async take(count: number): Promise<readonly ReceivedMessage[]> {
    const [taken = []] = await takeFromAny(this.#world, [this], count);
    return taken;
  }

  /** Checks that no message comes. */
  async expectQuiet(forMs = QUIET_MS): Promise<void> {
    const message = await this.#takeWithin(forMs);
    if (message === undefined) return;
    throw new ConformanceFailure(`expected no message, got ${textOf(message)} (count ${message.redeliveryCount})`);
  }

  /** What comes until this text does, which is the last of it. */
  async takeThrough(text: string): Promise<readonly ReceivedMessage[]> {
    const taken: ReceivedMessage[] = [];
    for (;;) {
      const message = await this.takeOne();
      taken.push(message);
      if (textOf(message) === text) return taken;
    }
  }

  /** Everything that comes until nothing more does. */
  async takeUntilQuiet(): Promise<readonly ReceivedMessage[]> {
    const taken: ReceivedMessage[] = [];
    for (;;) {
      const message = await this.#takeWithin(QUIET_MS);
      if (message === undefined) return taken;
      taken.push(message);
    }
  }

  /** Checks that exactly these texts come, in this order. Gives the messages. */
  async expectTexts(...texts: readonly string[]): Promise<readonly ReceivedMessage[]> {
    const messages = await this.take(texts.length);
    expectEqual(textsOf(messages), texts, 'the messages that came');
    return messages;
  }

  async acknowledge(...messages: readonly (ReceivedMessage | undefined)[]): Promise<void> {
    await this.#world.until(this.port.acknowledge(idsOf(messages)), 'an acknowledgement');
  }

  /** As parts of `transaction`. */
  async acknowledgeIn(transaction: Transaction, ...messages: readonly (ReceivedMessage | undefined)[]): Promise<void> {
    await this.#world.until(
      this.port.acknowledge(idsOf(messages), { transaction }),
      'an acknowledgement in a transaction',
    );
  }

  async acknowledgeCumulative(message: ReceivedMessage | undefined): Promise<void> {
    const [id] = idsOf([message]);
    if (id !== undefined) await this.#world.until(this.port.acknowledgeCumulative(id), 'a cumulative acknowledgement');
  }

  async redeliver(...messages: readonly (ReceivedMessage | undefined)[]): Promise<void> {
    await this.#world.until(this.port.redeliver(idsOf(messages)), 'a request for redelivery');
  }

  async seek(to: MessageId | Date | 'earliest' | 'latest'): Promise<void> {
    await this.#world.until(this.port.seek(to), 'a seek');
  }

  async close(): Promise<void> {
    await this.#world.until(this.port.close(), 'closing a subscription');
  }

  async #takeWithin(ms: number): Promise<ReceivedMessage | undefined> {
    const end = new AbortController();
    const receiving = this.port.receive(end.signal);
    await this.#world.comes(receiving, ms);
    end.abort();
    return receiving;
  }
}

/** `count` messages from whichever of the subscriptions get them: for each what it got. */
export async function takeFromAny(
  world: ConformanceWorld,
  subscriptions: readonly TestSubscription[],
  count: number,
): Promise<readonly (readonly ReceivedMessage[])[]> {
  const end = new AbortController();
  const taken = subscriptions.map((): ReceivedMessage[] => []);
  const total = (): number => taken.reduce((sum, messages) => sum + messages.length, 0);
  const takeAll = async ({ port }: TestSubscription, into: ReceivedMessage[]): Promise<void> => {
    for (;;) {
      const message = await port.receive(end.signal);
      if (message === undefined) return;
      into.push(message);
      if (total() >= count) end.abort();
    }
  };
  if (count === 0) end.abort();
  const taking = Promise.all(subscriptions.map((subscription, i) => takeAll(subscription, taken[i] ?? [])));
  const came = await world.comes(taking, PATIENCE_MS);
  end.abort();
  await taking;
  if (came && total() === count) return taken;
  const got = taken.map((messages) => `[${textsOf(messages).slice(0, 20).join(', ')}]`).join(' and ');
  throw new ConformanceFailure(`expected ${count} messages, got ${total()} within ${PATIENCE_MS} ms: ${got}`);
}

function idsOf(messages: readonly (ReceivedMessage | undefined)[]): MessageId[] {
  return messages.map((message) => {
    if (message === undefined) throw new ConformanceFailure('a message that the case relies on did not come');
    return message.id;
  });
}
