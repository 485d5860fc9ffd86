// One topic, or partition, of an embedded subscription over all its connections: when the broker closes the consumer it
// connects again, and goes on trying where somebody else came first.
import { TransportError } from '../../core/errors.js';
import type { ReceivedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import type { Timer } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { SubscriptionState } from '../../ports/transport.js';
import type { ConsumerRequest } from '../../broker/broker-requests.js';
import type { EmbeddedBroker } from '../../broker/embedded-broker.js';
import { ChunkedMessages } from './chunked-messages.js';
import { TopicLink } from './topic-link.js';
import type { LinkOwner } from './topic-link.js';

/** Between two attempts to connect again after the broker closed the consumer and someone else came first. */
const RECONNECT_DELAY_MS = 1_000;

export interface AttachmentOwner {
  arrived(attachment: TopicAttachment, messages: readonly ReceivedMessage[]): void;
  /** These entries are needed again, uncounted, or on Exclusive and Failover everything. */
  askBack(attachment: TopicAttachment, ids: readonly MessageId[]): void;
  /** Nothing that came over the connection so far will be settled over the next one: what is queued goes. */
  lost(attachment: TopicAttachment): void;
  connected(attachment: TopicAttachment): void;
  stateChanged(state: SubscriptionState): void;
  /** Whether its topic is still to be read: one that is gone must not be made again by who only looks for topics. */
  wants(topic: string): boolean;
}

export interface AttachmentFacts {
  readonly request: ConsumerRequest;
  /** Whether the broker keeps the order of a key that failed, and is asked to. */
  readonly orderedNegativeAck: boolean;
  readonly logger: Logger | undefined;
}

export class TopicAttachment implements LinkOwner {
  /** Full name, with its partition. */
  readonly topic: string;
  readonly chunks: ChunkedMessages;
  readonly #broker: EmbeddedBroker;
  readonly #request: ConsumerRequest;
  readonly #orderedNegativeAck: boolean;
  readonly #owner: AttachmentOwner;
  /** Undefined while it is not connected. */
  #link: TopicLink | undefined;
  #connection = 0;
  #state: SubscriptionState['state'] = 'lost';
  #reconnect: Timer | undefined;
  #closed = false;

  constructor(
    broker: EmbeddedBroker,
    { request, orderedNegativeAck, logger }: AttachmentFacts,
    owner: AttachmentOwner,
  ) {
    this.topic = request.topic;
    this.#broker = broker;
    this.#request = request;
    this.#orderedNegativeAck = orderedNegativeAck;
    this.#owner = owner;
    const { topic } = this;
    this.chunks = new ChunkedMessages({
      ...{ topic, clock: broker.clock, logger },
      mayArrive: () => this.#link?.hasPermits === true,
      discard: (ids) => this.#afterwards((link) => void link.acknowledge(ids)?.catch(() => undefined)),
      askBack: (ids) => this.#afterwards(() => owner.askBack(this, ids)),
      giveBack:
        request.type === 'key-shared'
          ? (ids) => this.#afterwards((link) => link.negativeAcknowledgeOrdered([], ids))
          : undefined,
    });
  }

  get state(): SubscriptionState {
    const { topic } = this;
    const state = { topic, connection: this.#connection, state: this.#state };
    return this.#orderedNegativeAck ? { ...state, orderedNegativeAck: true } : state;
  }

  /** Undefined while it is not connected. */
  get link(): TopicLink | undefined {
    return this.#link;
  }

  get hasReachedEnd(): boolean {
    return this.#link?.hasReachedEnd === true;
  }

  /** @throws TransportError CONNECTION_LOST. */
  connectedLink(): TopicLink {
    if (this.#link !== undefined) return this.#link;
    const text = `subscription "${this.#request.subscription}" lost its connection to ${this.topic} and waits to connect again`;
    throw new TransportError('CONNECTION_LOST', text, { retriable: true });
  }

  /** @throws TransportError CONSUMER_BUSY, TOPIC_NOT_FOUND. */
  connect(): void {
    const link = new TopicLink(this.topic, this.#connection + 1, this);
    link.connected(this.#broker.subscribe(this.#request, link));
    this.#link = link;
    this.chunks.connected();
    this.#connection += 1;
  }

  /** Tells of a connection that `connect` made. */
  report(): void {
    this.#change('connected');
    this.#owner.connected(this);
  }

  /** Leaves and comes back, because the broker closed the consumer or is about to. */
  connectAgain(): void {
    if (this.#closed) return;
    this.#leave();
    this.#owner.lost(this);
    this.#change('lost');
    if (!this.#owner.wants(this.topic)) return;
    try {
      this.connect();
    } catch {
      // Someone else came first; the state stays `lost` and says so.
      this.#reconnect = this.#broker.clock.setTimer(RECONNECT_DELAY_MS, () => this.connectAgain());
      return;
    }
    this.report();
  }

  close(): void {
    this.#closed = true;
    this.#leave();
  }

  arrived(link: TopicLink, messages: readonly ReceivedMessage[]): void {
    if (link === this.#link) this.#owner.arrived(this, messages);
  }

  activeChanged(link: TopicLink): void {
    if (link !== this.#link) return;
    // What is still to come goes to the consumer that is active now.
    if (link.active !== true) this.chunks.forgetIncomplete();
    this.#change(link.active === true ? 'active' : 'standby');
  }

  disconnected(link: TopicLink): void {
    if (link === this.#link) this.connectAgain();
  }

  #leave(): void {
    this.#reconnect?.cancel();
    this.chunks.forgetIncomplete();
    this.#link?.handle.close();
    this.#link = undefined;
  }

  /** What came leads to a call of the broker, which is still sending. */
  #afterwards(call: (link: TopicLink) => void): void {
    const link = this.#link;
    queueMicrotask(() => {
      if (link === undefined || link !== this.#link) return;
      try {
        call(link);
      } catch {
        // The broker closed it meanwhile: everything comes again.
      }
    });
  }

  #change(state: SubscriptionState['state']): void {
    if (this.#state === state && state !== 'connected') return;
    this.#state = state;
    this.#owner.stateChanged(this.state);
  }
}
