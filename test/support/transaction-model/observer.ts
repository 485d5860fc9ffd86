// What is known of messages, acknowledgements and transactions from outside the broker: what clients asked for and were answered, what is
// on the disk, what was delivered; and what of that must not be. The rules are in `transaction-model.ts`.
import type { FinalState } from '../../../src/broker/transactions/txn-paths.js';
import type { EntryAddress, StoredEntry } from '../../../src/ports/broker-store.js';
import type { DiskWatcher } from './model-stores.js';

/** The name of a rule, which stays the same while a program is made shorter. */
export type Rule =
  | 'isolated'
  | 'order'
  | 'atomic'
  | 'durable'
  | 'withheld'
  | 'conflict'
  | 'decided'
  | 'stuck'
  | 'converged'
  | 'left'
  | 'error';

export interface Violation {
  readonly rule: Rule;
  readonly text: string;
}

/** `asked`: no answer yet, or one that says that it is unknown. */
export type Answer = 'asked' | 'given' | 'refused';

export interface Asked {
  answer: Answer;
  /** How often everything had come to rest when it was answered. */
  answeredAt: number;
  /** Everything up to it. */
  readonly isCumulative: boolean;
}

export interface Seen {
  readonly number: number;
  readonly topic: string;
  readonly transaction: string | undefined;
  receipt: Answer;
  place: MessagePlace | undefined;
}

export interface MessagePlace {
  readonly ledgerId: number;
  readonly entryId: number;
  readonly index: number;
}

export interface TransactionSeen {
  state: 'OPEN' | FinalState | undefined;
  /** How often everything had come to rest when it ended. */
  endedAt: number;
  hasHeader: boolean;
}

/** What one subscription was asked to acknowledge. */
class Acknowledgements {
  readonly plain = new Map<Seen, Asked[]>();
  readonly within = new Map<Seen, Map<string, Asked[]>>();

  of(message: Seen, transaction: string | undefined): Asked[] {
    if (transaction === undefined) return listAt(this.plain, message, () => []);
    return listAt(
      listAt(this.within, message, () => new Map<string, Asked[]>()),
      transaction,
      () => [],
    );
  }
}

/** An entry as it was stored. */
interface EntrySeen {
  readonly place: MessagePlace;
  readonly transaction: string | undefined;
}

export class Observer implements DiskWatcher {
  readonly messages: Seen[] = [];
  readonly violations: Violation[] = [];
  /** What happened, a line each. */
  readonly story: string[] = [];
  readonly transactions = new Map<string, TransactionSeen>();
  readonly #nowMs: () => number;
  readonly #acknowledgements = new Map<string, Acknowledgements>();
  readonly #entries = new Map<string, EntrySeen[]>();
  /** How often everything had come to rest. */
  #rests = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  tell(line: string): void {
    this.story.push(`${((this.#nowMs() - Date.UTC(2026, 0, 1)) / 1_000).toFixed(3)} s  ${line}`);
  }

  violated(rule: Rule, text: string): void {
    this.violations.push({ rule, text });
    this.tell(`VIOLATED ${rule}: ${text}`);
  }

  /** Nothing happens any more without a call or time. */
  rested(): void {
    this.#rests += 1;
  }

  announce(topic: string, transaction: string | undefined): Seen {
    const { length: number } = this.messages;
    const message: Seen = { number, topic, transaction, receipt: 'asked', place: undefined };
    this.messages.push(message);
    return message;
  }

  asked(
    subscription: string,
    messages: readonly Seen[],
    transaction: string | undefined,
    isCumulative: boolean,
  ): Asked {
    const asked: Asked = { answer: 'asked', answeredAt: Infinity, isCumulative };
    const acknowledgements = this.#of(subscription);
    for (const message of messages) acknowledgements.of(message, transaction).push(asked);
    return asked;
  }

  answered(asked: Asked, answer: Answer): void {
    asked.answer = answer;
    asked.answeredAt = this.#rests;
  }

  /** All messages of the topic up to and including this one that are stored. */
  upTo(last: Seen): readonly Seen[] {
    const { place, topic } = last;
    if (place === undefined) return [last];
    return this.messages.filter((each) => each.topic === topic && each.place && !isBehind(each.place, place));
  }

  stored({ topic, ledgerId, entryId }: EntryAddress, { messages, transaction }: StoredEntry): void {
    listAt(this.#entries, topic, () => []).push({ place: { ledgerId, entryId, index: 0 }, transaction });
    for (const [index, { payload }] of messages.entries()) {
      const message = this.messages[numberIn(payload)];
      if (message !== undefined) message.place = { ledgerId, entryId, index };
    }
  }

  headerWritten(transaction: string, state: 'OPEN' | FinalState): void {
    const known = this.transactions.get(transaction);
    this.tell(`the header of ${transaction} says ${state}`);
    if (known === undefined) {
      if (state !== 'OPEN') this.violated('decided', `${transaction} was ${state} before it was open`);
      this.transactions.set(transaction, { state, endedAt: Infinity, hasHeader: true });
      return;
    }
    if (known.state !== 'OPEN') this.violated('decided', `${transaction} was ${known.state} and is ${state} now`);
    Object.assign(known, { state, endedAt: this.#rests });
  }

  headerDeleted(transaction: string): void {
    const known = this.transactions.get(transaction);
    this.tell(`the header of ${transaction} is collected`);
    if (known === undefined || known.state === 'OPEN')
      this.violated('decided', `the header of ${transaction} is gone, and it has not ended`);
    else known.hasHeader = false;
  }

  stateOf(transaction: string): TransactionSeen['state'] {
    return this.transactions.get(transaction)?.state;
  }

  /** A reader got it, in whatever life of the broker. */
  delivered(message: Seen, subscription: string, reader: string): void {
    const { number, transaction } = message;
    this.tell(`${reader} gets m${number}`);
    if (transaction !== undefined && this.stateOf(transaction) !== 'COMMITTED') {
      const state = this.stateOf(transaction) ?? 'unknown';
      this.violated('isolated', `${reader} got m${number} of ${transaction}, which is ${state}`);
    }
    this.#checkOvertaken(message, reader);
    this.#checkAcknowledged(message, subscription, reader);
  }

  /** Whether it is acknowledged there: undefined where nobody can say. */
  isAcknowledged(message: Seen, subscription: string): boolean | undefined {
    const { plain, within } = this.#of(subscription);
    const counting = [...(plain.get(message) ?? [])];
    for (const [transaction, asked] of within.get(message) ?? [])
      if (this.stateOf(transaction) === 'COMMITTED') counting.push(...asked);
    if (counting.some(({ answer }) => answer === 'given')) return true;
    return counting.some(({ answer }) => answer === 'asked') ? undefined : false;
  }

  /** Whether it is there for readers: undefined where nobody can say. */
  isVisible({ transaction, receipt }: Seen): boolean | undefined {
    const isDecided = transaction === undefined || this.stateOf(transaction) === 'COMMITTED';
    if (!isDecided || receipt === 'refused') return false;
    return receipt === 'given' ? true : undefined;
  }

  /** Whether anything was ever to be acknowledged there in a transaction. */
  hadTransactions(subscription: string): boolean {
    return this.#of(subscription).within.size > 0;
  }

  /** At the most one transaction that acknowledged a message one by one may be committed (T-10). */
  checkAcknowledgedOnce(): void {
    for (const [subscription, { within }] of this.#acknowledgements)
      for (const [message, all] of within) {
        const winners = [...all].filter(
          ([transaction, asked]) =>
            this.stateOf(transaction) === 'COMMITTED' &&
            asked.some(({ answer, isCumulative }) => answer === 'given' && !isCumulative),
        );
        if (winners.length < 2) continue;
        const names = winners.map(([transaction]) => transaction).join(' and ');
        this.violated('conflict', `m${message.number} was acknowledged on ${subscription} by ${names}, both committed`);
      }
  }

  /** A transactional acknowledgement was refused as a conflict, where nothing else went wrong: with what? */
  checkConflict(message: Seen, subscription: string, own: Asked): void {
    const { plain, within } = this.#of(subscription);
    if ((plain.get(message) ?? []).length > 0) return;
    for (const [transaction, asked] of within.get(message) ?? []) {
      const others = asked.filter((other) => other !== own && other.answer !== 'refused');
      const isOver =
        this.stateOf(transaction) === 'ABORTED' && this.#isFirm(this.transactions.get(transaction)?.endedAt);
      if (others.length > 0 && !isOver) return;
    }
    this.violated('conflict', `m${message.number} is not acknowledged on ${subscription} by anybody, and conflicts`);
  }

  /** T-07: nothing that is behind a message of an open transaction. */
  #checkOvertaken({ topic, place, number }: Seen, reader: string): void {
    if (place === undefined) return this.violated('durable', `${reader} got m${number}, which is not on the disk`);
    for (const { place: earlier, transaction } of this.#entries.get(topic) ?? []) {
      if (transaction === undefined || this.stateOf(transaction) !== 'OPEN' || !isBehind(place, earlier)) continue;
      this.violated('order', `${reader} got m${number}, and an earlier entry is of ${transaction}, which is open`);
    }
  }

  #checkAcknowledged(message: Seen, subscription: string, reader: string): void {
    const { plain, within } = this.#of(subscription);
    const { number } = message;
    if ((plain.get(message) ?? []).some((asked) => this.#isFirmAnswer(asked)))
      this.violated('durable', `${reader} got m${number}, which was acknowledged on ${subscription}`);
    for (const [transaction, asked] of within.get(message) ?? []) {
      if (!asked.some((each) => this.#isFirmAnswer(each))) continue;
      const state = this.stateOf(transaction);
      const where = `${reader} got m${number}, which was acknowledged on ${subscription} in ${transaction}, which is ${state}`;
      if (state === 'COMMITTED') this.violated('durable', where);
      if (state === 'OPEN') this.violated('withheld', where);
    }
  }

  /** What was on its way before it was acknowledged has arrived. */
  #isFirmAnswer({ answer, answeredAt }: Asked): boolean {
    return answer === 'given' && this.#isFirm(answeredAt);
  }

  #isFirm(rests = Infinity): boolean {
    return rests < this.#rests;
  }

  #of(subscription: string): Acknowledgements {
    return listAt(this.#acknowledgements, subscription, () => new Acknowledgements());
  }
}

/** -1 for what is none of the model's messages. */
export function numberIn(payload: Uint8Array | null | undefined): number {
  return Number(new TextDecoder().decode(payload ?? undefined) || -1);
}

export function isBehind(place: MessagePlace, other: MessagePlace): boolean {
  if (place.ledgerId !== other.ledgerId) return place.ledgerId > other.ledgerId;
  if (place.entryId !== other.entryId) return place.entryId > other.entryId;
  return place.index > other.index;
}

function listAt<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
