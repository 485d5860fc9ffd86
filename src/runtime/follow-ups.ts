// The messages that follow from an outcome: each gets an id that is the same on every repeat, the correlation id of
// what it follows from, and leaves only for topics that the handler declared.
import { PulseworkError, isRefusedForGood, toError } from '../core/errors.js';
import type { OutgoingMessage } from '../core/message.js';
import { PreparedMessage } from '../core/recorded-outcome.js';
import { fullTopicName, localName } from '../core/topic-name.js';
import type { Clock } from '../ports/clock.js';
import type { Transaction } from '../ports/transaction.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { HandlerPlan } from './handler-plan.js';
import { encodeMessage } from './message-encoder.js';
import type { Provenance } from './message-encoder.js';
import type { PendingPublish, PendingSettlement } from './pending-settlement.js';
import type { PortCalls } from './port-calls.js';
import type { PublishFailure, Publishers } from './publishers.js';

export class FollowUps {
  readonly #plan: HandlerPlan;
  readonly #publishers: Publishers;
  readonly #fullName: (name: string) => string;
  readonly #clock: Clock;
  readonly #calls: PortCalls;

  constructor(
    plan: HandlerPlan,
    parts: {
      readonly publishers: Publishers;
      readonly fullName: (name: string) => string;
      readonly clock: Clock;
      readonly calls: PortCalls;
    },
  ) {
    this.#plan = plan;
    this.#publishers = parts.publishers;
    this.#fullName = parts.fullName;
    this.#clock = parts.clock;
    this.#calls = parts.calls;
  }

  /** Publishes `messages` and waits for every receipt. Progress stays in `pending`, so that a repeat goes on from it. */
  async publish(
    record: DeliveryRecord,
    messages: readonly OutgoingMessage[],
    pending: PendingSettlement,
  ): Promise<PublishFailure | undefined> {
    const failure = await this.encode(record, messages, pending);
    return failure ?? this.#publishers.publishAll(pending.publishes ?? [], pending.observer);
  }

  /** Publishes what `encode` has made, in a transaction. What an earlier one had of it counts no more (see `Publisher`). */
  publishIn(
    transaction: Transaction,
    { publishes = [], observer }: PendingSettlement,
  ): Promise<PublishFailure | undefined> {
    for (const publish of publishes) Object.assign(publish, { receipt: undefined, sequenceId: undefined });
    return this.#publishers.publishAll(publishes, observer, { transaction });
  }

  /** Makes what is to be published, once. */
  async encode(
    record: DeliveryRecord,
    messages: readonly OutgoingMessage[],
    pending: PendingSettlement,
  ): Promise<PublishFailure | undefined> {
    try {
      pending.publishes ??= await this.#calls.run('encoding follow-ups', () =>
        Promise.all(messages.map((message, index) => this.#pending(record, message, index))),
      );
    } catch (error) {
      // A schema that throws or never ends is a fault of the program, not of the message.
      return { kind: isRefusedForGood(error) ? 'refused' : 'own-code', error: toError(error) };
    }
    return undefined;
  }

  /** One message as it will be published. @throws PulseworkError PUBLISH_REFUSED when it never can be. */
  async prepare(record: DeliveryRecord, outgoing: OutgoingMessage, index: number): Promise<PreparedMessage> {
    // One that was recorded is sent as it was, its id included.
    if (outgoing instanceof PreparedMessage) return outgoing;
    const topic = this.#topicOf(outgoing);
    return new PreparedMessage(topic, await encodeMessage(outgoing, this.#clock, this.#provenanceOf(record, index)));
  }

  /** What ties one message to the delivery that it follows from. @throws PulseworkError PUBLISH_REFUSED */
  provenanceOf(record: DeliveryRecord, outgoing: OutgoingMessage, index: number): Provenance {
    this.#topicOf(outgoing);
    return this.#provenanceOf(record, index);
  }

  #provenanceOf({ originId, message: { properties } }: DeliveryRecord, index: number): Provenance {
    return {
      messageId: `${originId}/${this.#plan.name}/${index}`,
      correlationId: properties['pulsework-correlation-id'] ?? originId,
      causationId: properties['pulsework-message-id'] ?? originId,
    };
  }

  async #pending(record: DeliveryRecord, outgoing: OutgoingMessage, index: number): Promise<PendingPublish> {
    const { topic, message } = await this.prepare(record, outgoing, index);
    return { kind: 'message', topic: topic.name, message, sequenceId: undefined, receipt: undefined };
  }

  /** @throws PulseworkError PUBLISH_REFUSED */
  #topicOf(outgoing: OutgoingMessage): string {
    const { topic, replyTo } = outgoing;
    const declared = this.#fullName(topic.name);
    const to = replyTo === undefined ? declared : fullTopicName(replyTo);
    const { publishes, name } = this.#plan;
    const isListed = publishes === undefined || publishes.has(to);
    if (isListed || (publishes.has(declared) && localName(to) === localName(topic.name))) return to;
    const said = JSON.stringify(replyTo ?? topic.name);
    const rule = `handler ${JSON.stringify(name)} sends to topic ${said}, which its "publishes" does not list; add it there`;
    throw new PulseworkError('PUBLISH_REFUSED', rule);
  }
}
