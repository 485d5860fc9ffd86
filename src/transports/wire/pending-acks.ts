// Acknowledgements on their way: those of one turn of the event loop travel in one command, and each caller learns
// whether the broker has them. When the consumer is detached nobody answers any more, so all of them fail at once.
import { afterThisTurn } from '../../system/turn-end.js';
import type { MessageIdData } from './protocol/message-metadata.js';

/** As many ids as other clients put into one command. */
const MAX_IDS = 1_000;

interface Group {
  readonly ids: MessageIdData[];
  readonly settled: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class PendingAcks {
  /** Sends one command and resolves with the broker's answer. */
  readonly #send: (ids: readonly MessageIdData[]) => Promise<unknown>;
  #open: Group | undefined;
  readonly #sent = new Set<Group>();

  constructor(send: (ids: readonly MessageIdData[]) => Promise<unknown>) {
    this.#send = send;
  }

  /** Resolves when the broker answered. @throws what `failAll` is given, or the broker's error. */
  add(ids: readonly MessageIdData[]): Promise<void> {
    const group = (this.#open ??= this.#begin());
    for (const id of ids) group.ids.push(id);
    if (group.ids.length >= MAX_IDS) this.flush();
    return group.settled;
  }

  /** Sends now what waits for the end of the turn. */
  flush(): void {
    const group = this.#open;
    if (group === undefined) return;
    this.#open = undefined;
    this.#sent.add(group);
    this.#send(group.ids)
      .then(group.resolve, group.reject)
      .finally(() => this.#sent.delete(group));
  }

  failAll(error: Error): void {
    this.#open?.reject(error);
    this.#open = undefined;
    for (const group of this.#sent) group.reject(error);
    this.#sent.clear();
  }

  #begin(): Group {
    let resolve: () => void = () => undefined;
    let reject: (error: Error) => void = () => undefined;
    const settled = new Promise<void>((onResolve, onReject) => {
      resolve = onResolve;
      reject = onReject;
    });
    const group = { ids: [], settled, resolve, reject };
    afterThisTurn(() => {
      if (this.#open === group) this.flush();
    });
    return group;
  }
}
