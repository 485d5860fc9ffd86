// Acknowledgements on their way: those of one turn of the event loop travel in one command, and each caller learns
// whether the broker has them. When the consumer is detached nobody answers any more, so all of them fail at once.
import type { Clock } from '../../ports/clock.js';
import { idDataOfAll, idsIn } from './entry-acks.js';
import type { AckItem } from './entry-acks.js';
import type { MessageIdData } from './protocol/message-metadata.js';

/** As many ids as other clients put into one command. */
const MAX_IDS = 1_000;

export type AckType = 'individual' | 'cumulative';

interface Group {
  /** A set: of a batch, however many of its messages are acknowledged in one turn, one id goes out. */
  readonly items: Set<AckItem>;
  /** What messages in chunks name beyond one id each, about. */
  furtherIds: number;
  readonly settled: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class PendingAcks {
  /** Sends one command and resolves with the broker's answer. */
  readonly #send: (type: AckType, ids: readonly MessageIdData[]) => Promise<unknown>;
  /** Told what the broker has, before those who acknowledged it. */
  readonly #confirmed: (items: Iterable<AckItem>) => void;
  readonly #clock: Clock;
  #open: Group | undefined;
  readonly #sent = new Set<Group>();

  constructor(
    clock: Clock,
    send: (type: AckType, ids: readonly MessageIdData[]) => Promise<unknown>,
    confirmed: (items: Iterable<AckItem>) => void,
  ) {
    this.#clock = clock;
    this.#send = send;
    this.#confirmed = confirmed;
  }

  /**
   * Resolves when the broker answered: one promise for all that are added in one turn. @throws what `failAll` is given,
   * or the broker's error.
   */
  add(item: AckItem): Promise<void> {
    const group = this.#open ?? this.#begin();
    group.items.add(item);
    group.furtherIds += idsIn(item) - 1;
    if (group.items.size + group.furtherIds >= MAX_IDS) this.flush();
    return group.settled;
  }

  /** The same for everything up to and including `item`; in a command of its own, after what waits. */
  addCumulative(item: AckItem): Promise<void> {
    this.flush();
    const group = newGroup();
    group.items.add(item);
    this.#dispatch(group, 'cumulative');
    return group.settled;
  }

  /** Sends now what waits for the end of the turn. */
  flush(): void {
    const group = this.#open;
    if (group === undefined) return;
    this.#open = undefined;
    this.#dispatch(group, 'individual');
  }

  failAll(error: Error): void {
    this.#open?.reject(error);
    this.#open = undefined;
    for (const group of this.#sent) group.reject(error);
    this.#sent.clear();
  }

  #begin(): Group {
    const group = newGroup();
    this.#open = group;
    this.#clock.nextTurn(() => {
      if (this.#open === group) this.flush();
    });
    return group;
  }

  #dispatch(group: Group, type: AckType): void {
    this.#sent.add(group);
    void this.#send(type, idDataOfAll(group.items))
      .then(() => this.#confirmed(group.items))
      .then(group.resolve, group.reject)
      .finally(() => this.#sent.delete(group));
  }
}

function newGroup(): Group {
  let resolve: () => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const settled = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { items: new Set(), furtherIds: 0, settled, resolve, reject };
}
