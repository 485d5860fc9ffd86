// Reads a topic without a position at the broker: from where it is told to begin, and after a lost connection from the
// message that it gave out last.
import { ConfigurationError } from '../../core/errors.js';
import { compareMessageIds, sameEntry } from '../../core/message-id.js';
import type { MessageId } from '../../core/message-id.js';
import type { ReceivedMessage } from '../../core/message.js';
import type { LastMessage } from './last-message.js';
import type { MessageIdData } from './protocol/message-metadata.js';
import type { SeekTarget } from '../../core/topic-parts.js';
import { EARLIEST, LATEST } from './seek-position.js';
import type { ConsumerSpec } from './subscribe-command.js';
import { NamedTopics } from './topic-source.js';
import type { WireContext } from './wire-context.js';
import type { ResolvedReaderOptions } from './wire-reader-options.js';
import { WireSubscription } from './wire-subscription.js';

/** Where one topic is read on. */
type Place =
  | { readonly from: 'earliest' }
  /** The first message that was published then or later; it is not among those up to `behind`. */
  | { readonly from: 'time'; readonly ms: number; readonly behind?: MessageId }
  | { readonly from: 'message'; readonly id: MessageId; readonly inclusive: boolean };

const FROM_THE_FIRST: Place = { from: 'earliest' };

export class WireReader {
  readonly #subscription: WireSubscription;
  /** By full topic name; a topic that is not in it is read from its first message. */
  readonly #places: Map<string, Place>;
  /** By topic: messages of this generation of its connection and of older ones were sent before it was moved. */
  readonly #movedAfter = new Map<string, number>();

  readonly #forget: (closed: WireReader) => void;

  private constructor(
    subscription: WireSubscription,
    places: Map<string, Place>,
    forget: (closed: WireReader) => void,
  ) {
    this.#subscription = subscription;
    this.#places = places;
    this.#forget = forget;
  }

  /** @param forget is called once at close. @throws TransportError */
  static async open(
    context: WireContext,
    options: ResolvedReaderOptions,
    forget: (closed: WireReader) => void,
  ): Promise<WireReader> {
    const { topic, start, startInclusive: inclusive } = options;
    const places = new Map<string, Place>();
    if (typeof start === 'object' && !(start instanceof Date)) {
      places.set(topic, { from: 'message', id: { ...start, topic }, inclusive });
    }
    const spec: ConsumerSpec = { ...options.spec, startOf: (name) => startOf(places.get(name), start) };
    const source = new NamedTopics(context, [topic], options);
    const subscription = await WireSubscription.open(context, spec, { source, forget: () => undefined, paused: true });
    const reader = new WireReader(subscription, places, forget);
    try {
      await reader.#begin(options);
    } catch (error) {
      await reader.close();
      throw error;
    }
    return reader;
  }

  /** Full names of the topics that are read: the topic itself, or its partitions. */
  topics(): readonly string[] {
    return this.#subscription.topics();
  }

  /**
   * The next message; undefined once `close()` was called or `signal` aborted. One call at a time. There is nothing to
   * acknowledge. Messages of one partition come in order, those of several as they arrive.
   */
  async read(signal: AbortSignal): Promise<ReceivedMessage | undefined> {
    for (;;) {
      const message = await this.#subscription.receive(signal);
      if (message === undefined) return undefined;
      if (!this.#isBefore(message)) {
        this.#places.set(message.id.topic, { from: 'message', id: message.id, inclusive: false });
        return message;
      }
      this.#leftOut(message);
    }
  }

  /**
   * Whether there is a message that `read` has not given out yet, at the moment of the answer.
   * @throws TransportError CONNECTION_LOST (retriable), ALREADY_CLOSED.
   */
  async hasMessageAvailable(): Promise<boolean> {
    for (const [topic, { last, behind }] of await this.#subscription.lastMessages()) {
      const place = this.#places.get(topic) ?? FROM_THE_FIRST;
      if (last !== undefined && isAhead(last, place, behind)) return true;
    }
    return false;
  }

  /**
   * Moves to a message, which is then the next one; to the first one of a time or later; or to an end of the topic.
   * @throws TransportError; PulseworkError MESSAGE_ID_INVALID for what is no such place.
   */
  async seek(to: SeekTarget): Promise<void> {
    const places = await this.#placesFor(to);
    const before = [...places.keys()].map((topic) => [topic, this.#places.get(topic) ?? FROM_THE_FIRST] as const);
    const generations = new Map(this.#subscription.states().map(({ topic, connection }) => [topic, connection]));
    // Before the request: whoever is registered anew on the way has to begin at the new place.
    for (const [topic, place] of places) {
      this.#places.set(topic, place);
      this.#movedAfter.set(topic, generations.get(topic) ?? 0);
    }
    try {
      await this.#subscription.seek(to);
    } catch (error) {
      for (const [topic, place] of before) {
        this.#places.set(topic, place);
        this.#movedAfter.delete(topic);
      }
      throw error;
    }
  }

  /** Calling it twice is allowed. */
  close(): Promise<void> {
    this.#forget(this);
    return this.#subscription.close();
  }

  /** Nothing was asked for yet: the place is settled first, so that it holds over a connection that is lost meanwhile. */
  async #begin({ topic, start, startInclusive: inclusive }: ResolvedReaderOptions): Promise<void> {
    const isMessage = typeof start === 'object' && !(start instanceof Date);
    if (isMessage && !this.topics().includes(topic)) {
      const rule = `"start" is a message, but ${topic} has partitions: name the one that the message is of`;
      throw new ConfigurationError([`reader: ${rule}`]);
    }
    if (start instanceof Date) await this.seek(start);
    if (start === 'latest') await this.#beginAtEnd(inclusive);
    this.#subscription.resume();
  }

  async #beginAtEnd(inclusive: boolean): Promise<void> {
    const last = await this.#subscription.lastMessageIds();
    for (const [topic, id] of last) this.#places.set(topic, placeAfter(id));
    if (!inclusive) return;
    for (const id of last.values()) if (id !== undefined) await this.seek(id);
  }

  async #placesFor(to: SeekTarget): Promise<ReadonlyMap<string, Place>> {
    const topics = this.topics();
    if (to === 'latest') {
      return new Map([...(await this.#subscription.lastMessageIds())].map(([topic, id]) => [topic, placeAfter(id)]));
    }
    if (to === 'earliest') return new Map(topics.map((topic) => [topic, FROM_THE_FIRST]));
    if (to instanceof Date) return new Map(topics.map((topic) => [topic, { from: 'time', ms: to.getTime() }]));
    // What is no place at all is refused by the subscription.
    if (typeof to !== 'object' || (to as unknown) === null) return new Map();
    const topic = to.topic === '' ? (topics[0] ?? '') : to.topic;
    return new Map([[topic, { from: 'message', id: { ...to, topic }, inclusive: true }]]);
  }

  /** The broker begins with a whole entry, and with the one that was given out last. */
  #isBefore({ id, publishTimeMs, connection }: ReceivedMessage): boolean {
    if (connection <= (this.#movedAfter.get(id.topic) ?? 0)) return true;
    const place = this.#places.get(id.topic) ?? FROM_THE_FIRST;
    if (place.from === 'earliest') return false;
    if (place.from === 'time') return publishTimeMs < place.ms;
    const order = compareToPlace(id, place.id);
    return order < 0 || (order === 0 && !place.inclusive);
  }

  /** Who waits for the first message of a time must not look for it again in what was too early. */
  #leftOut({ id, connection }: ReceivedMessage): void {
    const place = this.#places.get(id.topic);
    if (place?.from !== 'time' || connection <= (this.#movedAfter.get(id.topic) ?? 0)) return;
    this.#places.set(id.topic, { ...place, behind: id });
  }
}

/** Whether the last message of a topic is still to come. @param sentBehind where the broker begins, if it tells. */
function isAhead(last: MessageId, place: Place, sentBehind: LastMessage['behind']): boolean {
  if (place.from === 'earliest') return true;
  if (place.from === 'time') {
    const behind = place.behind ?? (sentBehind && { ...last, ...sentBehind, batchIndex: -1 });
    return behind === undefined || compareToPlace(last, behind) > 0;
  }
  const order = compareToPlace(last, place.id);
  return order > 0 || (order === 0 && place.inclusive);
}

/** A place without a batch index is the whole entry. */
function compareToPlace(id: MessageId, place: MessageId): number {
  return place.batchIndex < 0 && sameEntry(id, place) ? 0 : compareMessageIds(id, place);
}

/** Behind the last message of a topic. */
function placeAfter(last: MessageId | undefined): Place {
  return last === undefined ? FROM_THE_FIRST : { from: 'message', id: last, inclusive: false };
}

/** Where the broker is to begin, the entry included. Before the place of `latest` is known it is the end. */
function startOf(place: Place | undefined, start: SeekTarget): MessageIdData {
  if (place === undefined) return start === 'latest' ? LATEST : EARLIEST;
  if (place.from !== 'message') return EARLIEST;
  const { ledgerId, entryId } = place.id.firstChunk ?? place.id;
  return { ledgerId, entryId };
}
