// Publishing outside handlers: the same encoding, checks, plugins and receipts as follow-ups of an outcome.
import { PulseworkError } from '../core/errors.js';
import type { MessageOptions } from '../core/message.js';
import type { Topic } from '../core/topic.js';
import type { Clock } from '../ports/clock.js';
import { encodeMessage } from './message-encoder.js';
import type { Publishers } from './publishers.js';

export interface TopicPublisher<In> {
  /**
   * Resolves when the broker has stored the message.
   * @throws PulseworkError PUBLISH_REFUSED when it can never be published; ILLEGAL_STATE once the runtime has closed;
   *   a TransportError or CALL_TIMED_OUT when it failed in passing: then whether it is stored is unknown.
   */
  publish(payload: In, options?: MessageOptions): Promise<void>;
}

export function topicPublisher<In>(
  topic: Topic<In>,
  parts: {
    readonly publishers: Publishers;
    readonly clock: Clock;
    readonly fullName: (name: string) => string;
    readonly requireOpen: () => void;
  },
): TopicPublisher<In> {
  const name = parts.fullName(topic.name);
  return {
    async publish(payload, options) {
      parts.requireOpen();
      const message = await encodeMessage(topic.message(payload, options), parts.clock);
      const failure = await parts.publishers.publishAll([
        { topic: name, message, sequenceId: undefined, confirmed: false },
      ]);
      if (failure === undefined) return;
      if (failure.kind !== 'refused' || failure.error instanceof PulseworkError) throw failure.error;
      throw new PulseworkError('PUBLISH_REFUSED', `message for topic ${name} was refused: ${failure.error.message}`, {
        cause: failure.error,
      });
    },
  };
}
