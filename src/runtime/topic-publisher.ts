// Publishing outside handlers: the same encoding, checks, plugins and receipts as follow-ups of an outcome.
import { ConfigurationError, PulseworkError, describeValue } from '../core/errors.js';
import type { MessageOptions } from '../core/message.js';
import type { MessageId } from '../core/message-id.js';
import type { Topic } from '../core/topic.js';
import { isTopic } from '../core/topic.js';
import type { Clock } from '../ports/clock.js';
import type { InTransaction } from '../ports/transaction.js';
import { encodeMessage } from './message-encoder.js';
import type { PendingPublish } from './pending-settlement.js';
import type { Publishers } from './publishers.js';

export interface TopicPublisher<In> {
  /**
   * Resolves with where the broker stored the message.
   * @throws PulseworkError PUBLISH_REFUSED when it can never be published; ILLEGAL_STATE once the runtime has closed;
   *   a TransportError or CALL_TIMED_OUT when it failed in passing: then whether it is stored is unknown.
   */
  publish(payload: In, options?: MessageOptions): Promise<MessageId>;
}

export function topicPublisher<In>(
  topic: Topic<In>,
  parts: {
    readonly publishers: Publishers;
    readonly clock: Clock;
    readonly fullName: (name: string) => string;
    readonly requireOpen: () => void;
    /** The transaction it publishes in. @default none */
    readonly where?: InTransaction | undefined;
  },
): TopicPublisher<In> {
  if (!isTopic(topic))
    throw new ConfigurationError([`publisher() takes a result of topic(), got ${describeValue(topic)}`]);
  const name = parts.fullName(topic.name);
  return {
    async publish(payload, options) {
      parts.requireOpen();
      const message = await encodeMessage(topic.message(payload, options), parts.clock);
      const pending: PendingPublish = {
        kind: 'message',
        topic: name,
        message,
        sequenceId: undefined,
        receipt: undefined,
      };
      const failure = await parts.publishers.publishAll([pending], undefined, parts.where);
      if (failure?.kind === 'refused' && !isRefusal(failure.error)) throw refused(name, failure.error);
      if (failure !== undefined) throw failure.error;
      return pending.receipt as MessageId;
    },
  };
}

function isRefusal(error: Error): boolean {
  return error instanceof PulseworkError && error.code === 'PUBLISH_REFUSED';
}

function refused(topic: string, cause: Error): PulseworkError {
  return new PulseworkError('PUBLISH_REFUSED', `message for topic ${topic} was refused: ${cause.message}`, { cause });
}
