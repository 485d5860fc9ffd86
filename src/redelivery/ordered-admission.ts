// Whether a message may be handled now, for applications that queue messages by themselves and keep the order of each key
// (PIP-493): asked just before handling, answered by what of the key has not been acknowledged.
import { EntryMap } from '../core/entry-map.js';
import type { ReceivedMessage } from '../core/message.js';
import { compareMessageIds } from '../core/message-id.js';
import type { MessageId } from '../core/message-id.js';
import { orderKeyOf } from '../core/message-key.js';

/**
 * Why a message was taken back. For logs: what is to be done, to discard it, is the same for all three.
 * `key-awaiting-retry`: an earlier message of the key, or this one itself, failed and has not come again.
 * `earlier-message-unresolved`: an earlier one is not acknowledged, or this one is here a second time while it is handled.
 * `superseded-connection`: the connection it came over was replaced, and everything unacknowledged comes again.
 */
export type ReturnReason = 'key-awaiting-retry' | 'earlier-message-unresolved' | 'superseded-connection';

/**
 * `admitted`: the earliest unacknowledged message of its key. `admitted-without-guarantee`: the same, of one for which
 * nothing is promised: without a key, or from a broker that does not keep the order. `returned`: it is with the broker
 * again, uncounted; discard it, and neither acknowledge it nor negatively.
 */
export type Admission =
  | { readonly outcome: 'admitted' }
  | { readonly outcome: 'admitted-without-guarantee' }
  | { readonly outcome: 'returned'; readonly reason: ReturnReason };

export interface OrderedAdmissionOptions {
  /**
   * Gives the entry of this message back to the broker, uncounted, with all messages of the entry. Called within `acquire`,
   * once per entry. It must not throw.
   */
  readonly giveBack: (message: ReceivedMessage) => void;
}

/** A message of a key that is not acknowledged. It keeps its place while it is with the broker, too. */
interface Place {
  readonly id: MessageId;
  readonly order: KeyOrder;
  /** Undefined while nothing of it is here. */
  copy: Copy | undefined;
  awaitsRetry: boolean;
  /** Whether what is known of the key must not be forgotten without it. */
  isHeld: boolean;
  /** When the broker heard that it is here no more, counted; `Infinity` while it has not heard. */
  leftAt: number;
}

/** One arrival of a message. */
interface Copy {
  readonly place: Place;
  answer: Admission | undefined;
}

interface KeyOrder {
  readonly key: string;
  readonly link: Link;
  /** By position. */
  readonly places: Place[];
  /** How many of them are held. */
  held: number;
}

/** A topic over its present connection. */
interface Link {
  readonly connection: number;
  readonly keepsOrder: boolean;
  readonly keys: Map<string, KeyOrder>;
}

const ADMITTED: Admission = { outcome: 'admitted' };
const WITHOUT_GUARANTEE: Admission = { outcome: 'admitted-without-guarantee' };
const SUPERSEDED: Admission = { outcome: 'returned', reason: 'superseded-connection' };
const AWAITING_RETRY: Admission = { outcome: 'returned', reason: 'key-awaiting-retry' };
const UNRESOLVED: Admission = { outcome: 'returned', reason: 'earlier-message-unresolved' };

/**
 * Admits the messages of each key one after the other (K-51): a message is admitted when no earlier one of its key, by
 * ledger, entry and batch index, is unacknowledged. Told of everything that happens to the messages of a subscription, from
 * the arrival of the first one on. What is known of a key is forgotten when no copy of it is here and none that failed is
 * waited for, never by time: messages may lie in queues of the application for as long as they will.
 *
 * It promises order where the application asks, handles and settles the messages of one key one after the other, in the
 * order in which they came, and the broker keeps the order of keys that failed.
 */
export class OrderedAdmission {
  readonly #giveBack: OrderedAdmissionOptions['giveBack'];
  readonly #links = new Map<string, Link>();
  /** Most are settled in the order in which they came: the first of an entry goes first. */
  readonly #entries = new EntryMap<Place[]>();
  /** What was received tells its arrival, also after it came again. */
  readonly #copies = new WeakMap<object, Copy>();
  #left = 0;

  constructor(options: OrderedAdmissionOptions) {
    this.#giveBack = options.giveBack;
  }

  /** Messages of which a place is kept. */
  get size(): number {
    return this.#entries.values().reduce((size, places) => size + places.length, 0);
  }

  /** Whether nothing is tracked. */
  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /**
   * The topic is on this connection now; copies that came over an earlier one are superseded.
   * @param connection what `ReceivedMessage.connection` says of messages that come over it.
   * @param keepsOrder whether its broker keeps the order of a key that failed.
   */
  connected(topic: string, connection: number, keepsOrder: boolean): void {
    if (this.#links.get(topic)?.connection === connection) return;
    this.connectionLost(topic);
    this.#links.set(topic, { connection, keepsOrder, keys: new Map() });
  }

  /** Everything unacknowledged of the topic comes again, in order: whatever is here of it is superseded. */
  connectionLost(topic: string): void {
    for (const order of this.#links.get(topic)?.keys.values() ?? []) this.#forget(order);
    this.#links.delete(topic);
  }

  /** An entry came, and of its messages these: others of it that were here before have been acknowledged elsewhere. */
  arrived(messages: readonly ReceivedMessage[]): void {
    const [first] = messages;
    if (first === undefined) return;
    const link = this.#links.get(first.id.topic);
    if (link?.keepsOrder !== true || link.connection !== first.connection) return;
    const came = new Set(messages.map(({ id }) => id.batchIndex));
    const gone = this.#placesOf(first.id).filter((place) => !came.has(place.id.batchIndex));
    for (const place of gone) this.#resolve(place);
    for (const message of messages) this.#track(message, link);
  }

  /**
   * Asked once per message, just before it is handled. Asked again it answers the same, and gives nothing back twice; so do
   * all messages of an entry that was given back. Give the message as it was received.
   */
  acquire(message: ReceivedMessage): Admission {
    const link = this.#links.get(message.id.topic);
    if (link === undefined || link.connection !== message.connection) return SUPERSEDED;
    if (!link.keepsOrder || orderKeyOf(message) === undefined) return WITHOUT_GUARANTEE;
    const copy = this.#copies.get(message) ?? this.#placeOf(message.id)?.copy;
    // Nothing of it is here: it was given back, or is acknowledged.
    if (copy === undefined) return AWAITING_RETRY;
    copy.answer ??= this.#decide(copy.place, message);
    return copy.answer;
  }

  /** Whether a copy of the message is here: in a queue, or handled. */
  isHere(id: MessageId): boolean {
    return this.#placeOf(id)?.copy !== undefined;
  }

  /** The only thing that resolves a message. An id without a batch index acknowledges its whole entry. */
  acknowledged(id: MessageId): void {
    for (const place of this.#covered(id)) this.#resolve(place);
  }

  /**
   * It was negatively acknowledged, and will be asked back.
   * @param isBrokerTold whether the broker knows that it failed, and sends nothing later of its key meanwhile.
   */
  failed(id: MessageId, isBrokerTold: boolean): void {
    for (const place of this.#covered(id)) this.#fail(place, isBrokerTold);
  }

  /** The broker was asked to send it again: its delay is over, or its time to be acknowledged, or it was asked for at once. */
  askedBack(id: MessageId): void {
    for (const place of this.#covered(id)) {
      this.#fail(place, false);
      if (place.leftAt === Infinity) place.leftAt = this.#nextLeft();
    }
  }

  /**
   * The entry of this message went back to the broker, uncounted or with a request for others of it. What is admitted of it
   * is handled to its end.
   */
  wentBack(id: MessageId): void {
    const places = this.#placesOf(id).filter(({ copy }) => copy !== undefined && copy.answer === undefined);
    for (const place of places) this.#goBack(place, reasonToReturn(place) ?? AWAITING_RETRY);
  }

  clear(): void {
    this.#links.clear();
    this.#entries.clear();
  }

  #track(message: ReceivedMessage, link: Link): void {
    const key = orderKeyOf(message);
    if (key === undefined) return;
    const place = this.#placeOf(message.id) ?? this.#newPlace(message.id, link, key);
    const { copy: before, order } = place;
    const copy: Copy = { place, answer: undefined };
    this.#copies.set(message, copy);
    if (before?.answer === ADMITTED) {
      copy.answer = UNRESOLVED; // It is being handled: how that ends decides.
      return;
    }
    if (before === undefined) this.#resolveWaitedFor(place);
    else before.answer = AWAITING_RETRY;
    if (!place.isHeld) order.held += 1;
    place.isHeld = true;
    place.copy = copy;
    place.awaitsRetry = false;
    place.leftAt = 0;
  }

  #decide(place: Place, message: ReceivedMessage): Admission {
    const reason = reasonToReturn(place);
    if (reason === undefined) return ADMITTED;
    const comesWithRetry = this.#placesOf(message.id).some(({ awaitsRetry }) => awaitsRetry);
    this.#goBack(place, reason);
    // Where another message of its entry failed, the entry comes again with that one, and not before.
    if (comesWithRetry) return reason;
    this.wentBack(message.id);
    this.#giveBack(message);
    return reason;
  }

  /**
   * What is sent again after the broker was told of earlier ones, failed or given back, waits for them no longer: they were
   * acknowledged elsewhere, or nobody waits for them.
   */
  #resolveWaitedFor({ order, id, leftAt }: Place): void {
    if (leftAt === 0 || leftAt === Infinity) return;
    const gone = order.places.filter((one) => one.copy === undefined && compareMessageIds(one.id, id) < 0);
    for (const one of gone) if (one.leftAt < leftAt) this.#resolve(one);
  }

  #fail(place: Place, isBrokerTold: boolean): void {
    if (place.copy === undefined) return;
    place.copy.answer = AWAITING_RETRY;
    place.copy = undefined;
    place.awaitsRetry = true;
    place.leftAt = isBrokerTold ? this.#nextLeft() : Infinity;
    // What was on its way when the broker was told must still be known for later.
    if (!isBrokerTold) this.#release(place);
  }

  #goBack(place: Place, answer: Admission): void {
    if (place.copy === undefined) return;
    place.copy.answer = answer;
    place.copy = undefined;
    place.leftAt = this.#nextLeft();
    this.#release(place);
  }

  #resolve(place: Place): void {
    const { order, copy } = place;
    remove(order.places, place);
    this.#removeFromEntry(place);
    // It is acknowledged: there is nothing to handle.
    if (copy !== undefined) copy.answer ??= AWAITING_RETRY;
    this.#release(place);
  }

  #release(place: Place): void {
    if (!place.isHeld) return;
    place.isHeld = false;
    place.order.held -= 1;
    if (place.order.held === 0) this.#forget(place.order);
  }

  #forget({ link, key, places }: KeyOrder): void {
    for (const place of places) this.#removeFromEntry(place);
    link.keys.delete(key);
  }

  #newPlace(id: MessageId, link: Link, key: string): Place {
    const order = link.keys.get(key) ?? { key, link, places: [], held: 0 };
    link.keys.set(key, order);
    const place: Place = { id, order, copy: undefined, awaitsRetry: false, isHeld: false, leftAt: 0 };
    order.places.splice(order.places.findLastIndex((one) => compareMessageIds(one.id, id) < 0) + 1, 0, place);
    const entry = this.#entries.get(id);
    if (entry === undefined) this.#entries.set(id, [place]);
    else entry.push(place);
    return place;
  }

  #removeFromEntry(place: Place): void {
    const entry = this.#entries.get(place.id);
    if (entry === undefined) return;
    remove(entry, place);
    if (entry.length === 0) this.#entries.delete(place.id);
  }

  #placesOf(id: MessageId): readonly Place[] {
    return this.#entries.get(id) ?? [];
  }

  /** Without a batch index `id` means all of its entry. */
  #covered(id: MessageId): readonly Place[] {
    if (id.batchIndex < 0) return [...this.#placesOf(id)];
    const place = this.#placeOf(id);
    return place === undefined ? [] : [place];
  }

  #placeOf(id: MessageId): Place | undefined {
    return this.#placesOf(id).find((place) => place.id.batchIndex === id.batchIndex);
  }

  #nextLeft(): number {
    this.#left += 1;
    return this.#left;
  }
}

/** Undefined for the earliest of its key. */
function reasonToReturn(place: Place): Admission | undefined {
  const { places } = place.order;
  if (places[0] === place) return undefined;
  const isRetryAwaited = places.slice(0, places.indexOf(place)).some(({ awaitsRetry }) => awaitsRetry);
  return isRetryAwaited ? AWAITING_RETRY : UNRESOLVED;
}

/** The first one without moving the others. */
function remove(places: Place[], place: Place): void {
  const at = places.indexOf(place);
  if (at === 0) places.shift();
  else if (at > 0) places.splice(at, 1);
}
