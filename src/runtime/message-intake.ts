// Asks one subscription for one message at a time. It ends when told to, and tells when the transport ended it by itself.
import type { ReceivedMessage } from '../core/message.js';
import type { Clock } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { Subscription } from '../ports/transport.js';
import { receiveAgain } from './receive-again.js';

/** Messages asked for before input and timers get their turn: a handler that feeds its own topic must not keep them out. */
const MESSAGES_PER_TURN = 256;

export interface MessageIntakeOptions {
  readonly subscription: Subscription;
  /** The handler's name. */
  readonly handler: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onMessage: (message: ReceivedMessage) => void;
}

export class MessageIntake {
  readonly #options: MessageIntakeOptions;
  readonly #end = new AbortController();
  #receiving = false;
  /** In this turn of the event loop. */
  #askedThisTurn = 0;
  #ended = false;

  constructor(options: MessageIntakeOptions) {
    this.#options = options;
  }

  /** Whether a message may be asked for: none is under way, and there will be more. */
  get ready(): boolean {
    return !this.#receiving && !this.#ended && !this.#end.signal.aborted;
  }

  /** Whether the transport ended the subscription by itself: nothing is received any more. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Only when `ready`. */
  receive(): void {
    this.#receiving = true;
    this.#askedThisTurn++;
    if (this.#askedThisTurn <= MESSAGES_PER_TURN) return this.#receiveNow();
    this.#options.clock.nextTurn(() => {
      this.#askedThisTurn = 0;
      this.#receiveNow();
    });
  }

  stop(): void {
    this.#end.abort();
  }

  #receiveNow(): void {
    const { subscription, handler, clock, logger } = this.#options;
    const { signal } = this.#end;
    subscription.receive(signal).then(
      (message) => this.#received(message),
      async (error: unknown) =>
        this.#received(await receiveAgain(error, { subscription, signal, handler, clock, logger })),
    );
  }

  #received(message: ReceivedMessage | undefined): void {
    this.#receiving = false;
    if (message !== undefined) return this.#options.onMessage(message);
    // Expected once it was stopped; else the transport closed the subscription, which nobody may overlook.
    if (this.#end.signal.aborted) return;
    this.#ended = true;
    const { logger, handler } = this.#options;
    logger.error('the subscription ended by itself; nothing more is received', { handler });
  }
}
