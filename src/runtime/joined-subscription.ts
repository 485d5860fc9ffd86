// A handler's own subscription and the one on its retry letter topic, as one: what comes from the second is read as
// a retry letter, so that a handler sees the original message. Which one a call belongs to follows from the topic.
import type { ReceivedMessage } from '../core/message.js';
import type { MessageId } from '../core/message-id.js';
import type { RetryLetter } from '../core/retry-letter.js';
import { readRetryLetter } from '../core/retry-letter.js';
import { withoutPartition } from '../core/topic-name.js';
import type { Clock } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { InTransaction } from '../ports/transaction.js';
import type { Subscription, SubscriptionState, Transport } from '../ports/transport.js';
import type { HandlerPlan } from './handler-plan.js';
import { receiveAgain } from './receive-again.js';

export interface OpeningOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface JoinedSubscriptionOptions {
  readonly own: Subscription;
  readonly letters: Subscription;
  /** Full names of the topics that `letters` is on. */
  readonly letterTopics: readonly string[];
  /** The handler's name. */
  readonly handler: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A message as it arrives at the runtime; with `letter`, its properties are those of the original. */
export interface ArrivedMessage extends ReceivedMessage {
  readonly letter?: RetryLetter | undefined;
}

/**
 * Opens what a handler takes from. The retry letter topic comes first: nothing may be published there before its
 * subscription is confirmed, or it would be lost.
 */
export async function openSubscription(plan: HandlerPlan, options: OpeningOptions): Promise<Subscription> {
  const { spec, retry } = plan;
  const { transport, ...watch } = options;
  if (retry === undefined) return transport.subscribe(spec);
  const letters = await transport.subscribe(retry.spec);
  try {
    const own = await transport.subscribe(spec);
    return new JoinedSubscription({ own, letters, letterTopics: retry.spec.topics, handler: plan.name, ...watch });
  } catch (error) {
    await letters.close();
    throw error;
  }
}

/** One of the two: at most one `receive` is under way, and what it gave waits here for its turn. */
interface Side {
  readonly subscription: Subscription;
  readonly read: (message: ReceivedMessage) => ArrivedMessage;
  receiving: boolean;
  arrived: ReceivedMessage | undefined;
  ended: boolean;
}

export class JoinedSubscription implements Subscription {
  readonly #options: JoinedSubscriptionOptions;
  readonly #own: Side;
  readonly #letters: Side;
  readonly #letterTopics: ReadonlySet<string>;
  /** The side to look at first, in turn, so that a busy one does not keep the other out. */
  #lettersFirst = true;
  /** Ends the wait of `receive`. No race of the two: on the side that is quiet it would leave something for each message. */
  #changed: () => void = () => undefined;

  constructor(options: JoinedSubscriptionOptions) {
    const { own, letters, letterTopics } = options;
    const side = { receiving: false, arrived: undefined, ended: false };
    this.#options = options;
    this.#own = { ...side, subscription: own, read: (message) => message };
    this.#letters = {
      ...side,
      subscription: letters,
      read: (message) => ({ ...message, ...readRetryLetter(message) }),
    };
    this.#letterTopics = new Set(letterTopics);
  }

  /** While one side fails the other goes on. Ends when either does. */
  async receive(signal: AbortSignal): Promise<ArrivedMessage | undefined> {
    for (;;) {
      const message = this.#take();
      if (message !== undefined) return message;
      if (this.#own.ended || this.#letters.ended || signal.aborted) return undefined;
      this.#receiveFrom(this.#own, signal);
      this.#receiveFrom(this.#letters, signal);
      await new Promise<void>((resolve) => (this.#changed = resolve));
    }
  }

  async acknowledge(ids: readonly MessageId[], where?: InTransaction): Promise<void> {
    await this.#bySide(ids, (subscription, own) => subscription.acknowledge(own, where));
  }

  acknowledgeCumulative(id: MessageId): Promise<void> {
    return this.#sideOf(id).subscription.acknowledgeCumulative(id);
  }

  async redeliver(ids: readonly MessageId[]): Promise<void> {
    await this.#bySide(ids, (subscription, own) => subscription.redeliver(own));
  }

  pause(): void {
    for (const { subscription } of this.#sides()) subscription.pause();
  }

  resume(): void {
    for (const { subscription } of this.#sides()) subscription.resume();
  }

  /** Of both: what was published again is not done. */
  backlog(): number | undefined {
    const [own, letters] = [this.#own, this.#letters].map(({ subscription }) => subscription.backlog?.());
    return own === undefined || letters === undefined ? undefined : own + letters;
  }

  /** Of the handler's own topics: others may publish retry letters again. */
  hasReachedEnd(): boolean {
    return this.#own.subscription.hasReachedEnd?.() === true;
  }

  /** Of the handler's own topics: what was published again has left them. */
  seek(to: Parameters<Subscription['seek']>[0]): Promise<void> {
    return this.#own.subscription.seek(to);
  }

  onState(report: (state: SubscriptionState) => void): void {
    for (const side of this.#sides()) {
      side.subscription.onState((state) => {
        // It comes again over the next connection; this copy belongs to nobody any more.
        if (state.state === 'lost' && side.arrived?.id.topic === state.topic) side.arrived = undefined;
        report(state);
      });
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#sides().map(({ subscription }) => subscription.close()));
  }

  #sides(): readonly Side[] {
    return this.#lettersFirst ? [this.#letters, this.#own] : [this.#own, this.#letters];
  }

  #take(): ArrivedMessage | undefined {
    for (const side of this.#sides()) {
      const message = side.arrived;
      if (message === undefined) continue;
      side.arrived = undefined;
      this.#lettersFirst = side !== this.#letters;
      return side.read(message);
    }
    return undefined;
  }

  #receiveFrom(side: Side, signal: AbortSignal): void {
    if (side.receiving) return;
    const { subscription } = side;
    const { handler, clock, logger } = this.#options;
    side.receiving = true;
    void subscription
      .receive(signal)
      .catch((error: unknown) => receiveAgain(error, { subscription, signal, handler, clock, logger }))
      .then((message) => {
        side.receiving = false;
        if (message !== undefined) side.arrived = message;
        else if (!signal.aborted) this.#ended(side);
        this.#changed();
      });
  }

  #ended(side: Side): void {
    side.ended = true;
    if (side !== this.#letters) return;
    const { handler, letterTopics, logger } = this.#options;
    logger.error('the subscription on the retry letter topic ended by itself', { handler, topics: letterTopics });
  }

  #sideOf(id: MessageId): Side {
    return this.#letterTopics.has(withoutPartition(id.topic)) ? this.#letters : this.#own;
  }

  async #bySide(
    ids: readonly MessageId[],
    call: (subscription: Subscription, ids: readonly MessageId[]) => Promise<void>,
  ): Promise<void> {
    const calls = [this.#own, this.#letters].map(async (side) => {
      const own = ids.filter((id) => this.#sideOf(id) === side);
      if (own.length > 0) await call(side.subscription, own);
    });
    await Promise.all(calls);
  }
}
