// Takes and acknowledges what comes, over any number of losses, and counts each message: what fault tests compare with
// what was sent.
import type { ReceivedMessage } from '../../src/core/message.js';
import type { MessageId } from '../../src/core/message-id.js';
import { TransportError } from '../../src/core/errors.js';
import type { Subscription, SubscriptionState } from '../../src/ports/transport.js';

export interface Arrival {
  readonly text: string;
  readonly key: string;
  readonly id: MessageId;
}

export class CountingConsumer {
  readonly #subscription: Subscription;
  /** How often each text came. */
  readonly counts = new Map<string, number>();
  /** What came, in order, each copy by itself. */
  readonly arrivals: Arrival[] = [];
  #connections = 0;
  /** Acknowledgements without an answer. */
  #underWay = 0;
  #changed: (() => void)[] = [];
  #ended = false;
  readonly #running: Promise<void>;

  constructor(subscription: Subscription) {
    this.#subscription = subscription;
    subscription.onState((state) => this.#stateChanged(state));
    this.#running = this.#run();
  }

  /** How often it was attached. */
  get connections(): number {
    return this.#connections;
  }

  /** Which of `texts` have not come. */
  missing(texts: readonly string[]): readonly string[] {
    return texts.filter((text) => !this.counts.has(text));
  }

  /** Resolves when so many different messages have come, or when none came for `quietMs`. */
  async until(distinct: number, quietMs = 30_000): Promise<void> {
    await this.#wait(() => this.counts.size >= distinct, quietMs);
  }

  async untilConnections(count: number, quietMs = 30_000): Promise<void> {
    await this.#wait(() => this.#connections >= count, quietMs);
  }

  /** Everything that came is acknowledged, or the broker has it again. */
  async untilAcknowledged(quietMs = 10_000): Promise<void> {
    await this.#wait(() => this.#underWay === 0, quietMs);
  }

  async close(): Promise<void> {
    this.#ended = true;
    await this.#subscription.close();
    await this.#running;
  }

  async #run(): Promise<void> {
    const never = new AbortController().signal;
    while (!this.#ended) {
      const message = await this.#subscription.receive(never);
      if (message === undefined) return;
      this.#count(message);
    }
  }

  #count(message: ReceivedMessage): void {
    const text = Buffer.from(message.payload ?? '').toString();
    this.counts.set(text, (this.counts.get(text) ?? 0) + 1);
    this.arrivals.push({ text, key: String(message.key), id: message.id });
    this.#underWay += 1;
    this.#subscription.acknowledge([message.id]).then(
      () => this.#settled(),
      (error: unknown) => {
        // Lost with its connection: the broker sends the message again.
        if (!(error instanceof TransportError && error.retriable)) throw error;
        this.#settled();
      },
    );
    this.#tell();
  }

  #settled(): void {
    this.#underWay -= 1;
    this.#tell();
  }

  #stateChanged({ state }: SubscriptionState): void {
    if (state === 'connected') this.#connections += 1;
    this.#tell();
  }

  #tell(): void {
    const changed = this.#changed;
    this.#changed = [];
    for (const resolve of changed) resolve();
  }

  async #wait(holds: () => boolean, quietMs: number): Promise<void> {
    while (!holds()) {
      let timer: NodeJS.Timeout | undefined;
      const quiet = new Promise<'quiet'>((resolve) => (timer = setTimeout(() => resolve('quiet'), quietMs)));
      const changed = new Promise<void>((resolve) => this.#changed.push(resolve));
      const what = await Promise.race([changed, quiet]);
      clearTimeout(timer);
      if (what === 'quiet') return;
    }
  }
}
