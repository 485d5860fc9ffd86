// Something that several users of one process share: opened for the first of them, and let go after the last. Openings and closings
// never overlap.
import { PulseworkError } from './errors.js';

export class SharedOpening {
  readonly #subject: string;
  #state: 'new' | 'open' | 'closed' = 'new';
  /** Those that opened it and have not closed it. */
  #users = 0;
  /** The last opening or closing. */
  #turn: Promise<unknown> = Promise.resolve();

  /** @param subject for errors, e.g. `attempt store "file attempts.log"` */
  constructor(subject: string) {
    this.#subject = subject;
  }

  /** @param first when nobody has it open. @param opened what the caller is told then. @throws what `first` throws. */
  open<T>(first: () => Promise<void>, opened: () => T): Promise<T> {
    return this.#inTurn(async () => {
      if (this.#users === 0) await first();
      this.#users += 1;
      this.#state = 'open';
      return opened();
    });
  }

  /** More calls than one are allowed. @param last when nobody else has it open; it counts as closed from then on. */
  close(last: () => Promise<void>): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#users === 0) return;
      this.#users -= 1;
      if (this.#users > 0) return;
      this.#state = 'closed';
      await last();
    });
  }

  /** Undefined while it is open. */
  problem(): PulseworkError | undefined {
    switch (this.#state) {
      case 'open':
        return undefined;
      case 'closed':
        return new PulseworkError('ALREADY_CLOSED', `${this.#subject} was closed before the call`);
      case 'new':
        return new PulseworkError('ILLEGAL_STATE', `${this.#subject} is not open yet; open() it first`);
    }
  }

  /** Also when the one before failed. */
  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(act, act);
    this.#turn = done.catch(() => undefined);
    return done;
  }
}
