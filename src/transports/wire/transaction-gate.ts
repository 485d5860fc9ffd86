// Messages of transactions on their way to one partition: the first one of each waits until the coordinator knows the
// partition, which is told of all of them at once, and what was published after it waits behind it. Order counts, and a broker that deduplicates drops what
// has a lower sequence id than it has seen.
import { containRejection } from '../../core/errors.js';
import type { MessageId } from '../../core/message-id.js';
import { Fifo } from './fifo.js';
import { ownCopy } from './pending-message.js';
import type { PendingMessage } from './pending-message.js';

export interface TransactionGateParts {
  /** Full name, with its partition. */
  readonly topic: string;
  readonly publish: (message: PendingMessage) => Promise<MessageId>;
  /** Told of each message that is not published. */
  readonly refused: (message: PendingMessage) => void;
}

interface Held {
  readonly message: PendingMessage;
  readonly settle: (receipt: Promise<MessageId>) => void;
}

export class TransactionGate {
  readonly #parts: TransactionGateParts;
  readonly #held = new Fifo<Held>();
  #passing: Promise<void> = Promise.resolve();

  constructor(parts: TransactionGateParts) {
    this.#parts = parts;
  }

  enter(message: PendingMessage): Promise<MessageId> {
    if (this.#held.size === 0 && this.#mayPass(message)) return this.#parts.publish(message);
    const own = { ...message, message: ownCopy(message.message) };
    // One after the other, they would time out in this line behind a coordinator that is slow.
    if (!this.#mayPass(message)) containRejection(message.transaction?.addPartition(this.#parts.topic));
    const isFirst = this.#held.size === 0;
    const receipt = new Promise<MessageId>((settle) => this.#held.push({ message: own, settle }));
    if (isFirst) this.#passing = this.#letPass();
    return receipt;
  }

  /** Resolves once nothing is held: it was published, or refused. */
  empty(): Promise<void> {
    return this.#passing;
  }

  async #letPass(): Promise<void> {
    for (let first = this.#held.peek(); first !== undefined; first = this.#held.peek()) {
      const { message, settle } = first;
      const failure = this.#mayPass(message) ? undefined : await this.#failureOfAdding(message);
      this.#held.shift();
      if (failure === undefined) settle(this.#parts.publish(message));
      else {
        this.#parts.refused(message);
        settle(Promise.reject(failure));
      }
    }
  }

  #mayPass({ transaction }: PendingMessage): boolean {
    return transaction === undefined || transaction.hasPartition(this.#parts.topic);
  }

  #failureOfAdding({ transaction }: PendingMessage): Promise<Error | undefined> | undefined {
    return transaction?.addPartition(this.#parts.topic).then(
      () => undefined,
      (error: unknown) => error as Error,
    );
  }
}
