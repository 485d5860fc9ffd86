// One consumer of the official client, on one topic or partition, and what must be known about it: whether it is connected,
// over which connection, which of its messages are unsettled, and the one `receive()` it may have under way.
import { toError } from '../../core/errors.js';
import type { ReceivedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import type { SubscriptionSpec } from '../../core/subscription-spec.js';
import { redeliversSingly } from '../../core/subscription-spec.js';
import type { SeekTarget } from '../../core/topic-parts.js';
import type { SubscriptionState } from '../../ports/transport.js';
import { hold, release } from './held-objects.js';
import { NEGATIVE_ACK_DELAY_MS, NegativeAckQueue } from './negative-ack-queue.js';
import type { OfficialConsumer, OfficialMessage, OfficialMessageId } from './official-client.js';
import type { Official } from './official-connection.js';
import { closeQuietly, connectionLost, notSupported, transportError } from './official-errors.js';
import { officialIdOf, portIdOf } from './official-ids.js';
import type { ResolvedPulsarOptions } from './pulsar-options.js';
import { receivedMessageOf } from './received-message.js';
import { UnsettledIds } from './unsettled-ids.js';

const TYPES = { exclusive: 'Exclusive', failover: 'Failover', shared: 'Shared', 'key-shared': 'KeyShared' } as const;
const POSITIONS = { earliest: 'Earliest', latest: 'Latest' } as const;

/** What a link tells the subscription it belongs to. */
export interface LinkOwner {
  arrived(message: ReceivedMessage): void;
  /** What of this link's topic was not handed on yet will come again, or is not wanted any more. */
  dropQueued(topic: string): void;
  stateChanged(state: SubscriptionState): void;
  /** A `receive()` ended with an error: there may be no more. */
  failed(error: Error): void;
}

export class ConsumerLink {
  readonly topic: string;
  readonly #official: Official;
  readonly #consumer: OfficialConsumer;
  readonly #owner: LinkOwner;
  readonly #singly: boolean;
  readonly #ids = new UnsettledIds();
  readonly #nacks: NegativeAckQueue;
  readonly #acknowledging = new Set<Promise<unknown>>();
  #connection = 1;
  #connected = true;
  /** Whether a `receive()` is under way. Its continuation refers to this link: until it has ended, the consumer stays. */
  #receiving = false;
  #seeking: Promise<unknown> = Promise.resolve();
  /** What came while a seek was under way. */
  #heldBySeek: OfficialMessage[] | undefined;
  #closing: Promise<void> | undefined;

  private constructor(
    topic: string,
    spec: SubscriptionSpec,
    parts: { official: Official; consumer: OfficialConsumer; owner: LinkOwner; options: ResolvedPulsarOptions },
  ) {
    this.topic = topic;
    this.#official = parts.official;
    this.#consumer = parts.consumer;
    this.#owner = parts.owner;
    this.#singly = redeliversSingly(spec.type);
    this.#nacks = new NegativeAckQueue(parts.options.clock, (entry, id) => this.#handBack(entry, id));
  }

  /** @param queueSize messages that may lie in the client, at least 1. @throws TransportError */
  static async open(
    topic: string,
    spec: SubscriptionSpec,
    queueSize: number,
    parts: { official: Official; owner: LinkOwner; options: ResolvedPulsarOptions },
  ): Promise<ConsumerLink> {
    const opening = parts.official.client.subscribe({
      topic,
      subscription: spec.subscription,
      subscriptionType: TYPES[spec.type],
      subscriptionInitialPosition: POSITIONS[spec.initialPosition],
      receiverQueueSize: queueSize,
      consumerName: spec.consumerName,
      nAckRedeliverTimeoutMs: NEGATIVE_ACK_DELAY_MS,
      // Its own would run a message twice at the same time.
      ackTimeoutMs: 0,
      // Without it nothing is acknowledged of a batch before all of it is, and one failure repeats all.
      batchIndexAckEnabled: true,
    });
    const consumer = await opening.catch((error: unknown) => {
      throw transportError(`subscribing to "${topic}" as "${spec.subscription}"`, error);
    });
    hold(consumer);
    return new ConsumerLink(topic, spec, { ...parts, consumer });
  }

  get state(): SubscriptionState {
    return { topic: this.topic, connection: this.#connection, state: this.#connected ? 'connected' : 'lost' };
  }

  /** Asks for one message, unless one is being asked for. It cannot be taken back: what comes late waits in the queue. */
  ask(): void {
    if (this.#receiving || this.#closed) return;
    this.#receiving = true;
    this.#consumer.receive().then(
      (message) => {
        this.#receiving = false;
        if (!this.#closed) this.#arrived(message);
      },
      (error: unknown) => {
        this.#receiving = false;
        if (!this.#closed) this.#owner.failed(transportError(`receiving from "${this.topic}"`, error));
      },
    );
  }

  /** Looks whether the connection is what it was. The client does not tell when it changes, so it is asked often. */
  look(): void {
    if (this.#closed) return;
    const connected = this.#consumer.isConnected();
    if (connected === this.#connected) return;
    this.#connected = connected;
    if (connected) this.#connection += 1;
    else this.#lost();
    this.#owner.stateChanged(this.state);
  }

  /** What an acknowledgement given now would be: lost without a word. @throws TransportError CONNECTION_LOST (retriable). */
  checkConnected(): void {
    this.look();
    if (!this.#connected) throw connectionLost(`the consumer of "${this.topic}"`);
  }

  /** @throws TransportError NOT_SUPPORTED for a message of a batch that this consumer has not received. */
  checkId(id: MessageId): void {
    if (id.batchIndex < 0 || this.#ids.find(id) !== undefined) return;
    throw notSupported(
      `message ${id.batchIndex} of the batch ${id.ledgerId}:${id.entryId} was not received here: "pulsar-client" could acknowledge the whole batch only`,
    );
  }

  /** Resolves when the client has it; it sends it within 100 ms, or at close. @throws TransportError */
  async acknowledge(id: MessageId): Promise<void> {
    const known = this.#ids.find(id);
    const official = known ?? officialIdOf(this.#official.module, id);
    await this.#settle('acknowledging', this.#consumer.acknowledgeId(official));
    // One that fails leaves it unsettled: it can be acknowledged again, or asked back. So does a copy that came meanwhile.
    if (this.#ids.find(id) !== known) return;
    if (this.#ids.acknowledged(id)) this.#nacks.forget(UnsettledIds.keyOf(id));
  }

  async acknowledgeCumulative(id: MessageId): Promise<void> {
    const official = this.#ids.find(id) ?? officialIdOf(this.#official.module, id);
    await this.#settle('acknowledging cumulatively', this.#consumer.acknowledgeCumulativeId(official));
    this.#ids.acknowledgedUpTo(id);
  }

  /** Resolves when the client has the request. What is not unsettled here is ignored. */
  async redeliver(ids: readonly MessageId[]): Promise<void> {
    const requests = new Set<Promise<void>>();
    for (const id of ids) {
      const official = this.#ids.unsettledOf(id);
      if (official !== undefined) requests.add(this.#nacks.add(UnsettledIds.keyOf(id), official));
    }
    await Promise.all(requests);
  }

  /** On Exclusive and Failover one request sends everything again. */
  async redeliverAll(): Promise<void> {
    const any = this.#ids.any();
    if (any !== undefined) await this.#nacks.add(...any);
  }

  /** Where it fails everything is as it was. The client refuses a second one beside the first, so it waits. */
  seek(to: SeekTarget): Promise<void> {
    const seeking = this.#seeking.then(() => this.#seek(to));
    this.#seeking = seeking.catch(() => undefined);
    return seeking;
  }

  /** Sends what is acknowledged, gives back the rest. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  get #closed(): boolean {
    return this.#closing !== undefined;
  }

  async #close(): Promise<void> {
    this.#nacks.close();
    await Promise.allSettled(this.#acknowledging);
    const closing = closeQuietly(this.#consumer.close(), `closing the consumer of "${this.topic}"`);
    await closing.finally(() => release(this.#consumer));
  }

  async #seek(to: SeekTarget): Promise<void> {
    const seeking = this.#seekTo(to);
    this.#heldBySeek = [];
    try {
      await seeking;
      if (this.#closed) return;
      this.#forgetAll();
      // It has connected again, whether that was seen or not.
      this.#owner.stateChanged({ ...this.state, state: 'lost' });
      this.#connected = true;
      this.#connection += 1;
      this.#owner.stateChanged(this.state);
    } catch (error) {
      throw transportError(`seeking on "${this.topic}"`, error);
    } finally {
      // They may have come over the new connection, and the broker sends them once: they go on as part of it.
      const held = this.#heldBySeek;
      this.#heldBySeek = undefined;
      if (!this.#closed) for (const message of held) this.#arrived(message);
    }
  }

  #arrived(message: OfficialMessage): void {
    if (this.#heldBySeek !== undefined) return void this.#heldBySeek.push(message);
    this.look();
    // What was sent over a connection that is gone comes again over the next one.
    if (!this.#connected) return this.ask();
    let received: ReceivedMessage;
    try {
      const official = message.getMessageId();
      const id = portIdOf(official, () => this.topic);
      this.#ids.received(id, official);
      this.#nacks.forget(UnsettledIds.keyOf(id));
      received = receivedMessageOf(message, id, this.#connection);
    } catch (error) {
      // Without an id it can be neither handed on nor settled.
      this.#owner.failed(toError(error));
      return;
    }
    this.#owner.arrived(received);
  }

  #handBack(entry: string, id: OfficialMessageId): void {
    if (this.#closed) return;
    this.#consumer.negativeAcknowledgeId(id);
    if (this.#singly) this.#ids.handedBack(entry);
    else this.#ids.clear();
  }

  #lost(): void {
    this.#nacks.clear();
    this.#ids.connectionLost();
    if (this.#heldBySeek !== undefined) this.#heldBySeek = [];
    this.#owner.dropQueued(this.topic);
  }

  #forgetAll(): void {
    this.#ids.clear();
    this.#nacks.clear();
    this.#owner.dropQueued(this.topic);
  }

  #seekTo(to: SeekTarget): Promise<unknown> {
    const { module } = this.#official;
    if (to instanceof Date) return this.#consumer.seekTimestamp(Math.max(0, to.getTime()));
    if (to === 'earliest') return this.#consumer.seek(module.MessageId.earliest());
    if (to === 'latest') return this.#consumer.seek(module.MessageId.latest());
    return this.#consumer.seek(this.#ids.find(to) ?? officialIdOf(module, to, { withBatchIndex: true }));
  }

  async #settle(what: string, settling: Promise<unknown>): Promise<void> {
    this.#acknowledging.add(settling);
    try {
      await settling;
    } catch (error) {
      throw transportError(`${what} on "${this.topic}"`, error);
    } finally {
      this.#acknowledging.delete(settling);
    }
  }
}
