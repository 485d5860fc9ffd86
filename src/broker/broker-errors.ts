// What the embedded broker refuses, in the codes that the wire client has for a broker's answer and in Pulsar's own words.
import { TransportError } from '../core/errors.js';

export function notSupported(message: string): TransportError {
  return new TransportError('NOT_SUPPORTED', message, { retriable: false });
}

export function topicNotFound(topic: string): TransportError {
  return new TransportError('TOPIC_NOT_FOUND', `topic "${topic}" does not exist`, { retriable: false });
}

/** Over the wire Pulsar's SubscriptionNotFound has this code too. */
export function subscriptionNotFound(subscription: string, topic: string): TransportError {
  const text = `Subscription ${subscription} not found for topic ${topic}`;
  return new TransportError('TOPIC_NOT_FOUND', text, { retriable: false });
}

export function publishRefused(message: string): TransportError {
  return new TransportError('PUBLISH_REFUSED', message, { retriable: false });
}

export function topicTerminated(topic: string): TransportError {
  return new TransportError('TOPIC_TERMINATED', `topic "${topic}" was already terminated`, { retriable: false });
}

/** In Pulsar's words (T-19). */
export function noTransactions(): TransportError {
  return new TransportError('NOT_ALLOWED', "Server don't support transaction ack!", { retriable: false });
}

/** Somebody is connected who must leave first. */
export function stillInUse(message: string): TransportError {
  return new TransportError('NOT_ALLOWED', message, { retriable: true });
}

export function producerBusy(message: string): TransportError {
  return new TransportError('PRODUCER_BUSY', message, { retriable: true });
}

export function producerFenced(message: string): TransportError {
  return new TransportError('PRODUCER_FENCED', message, { retriable: false });
}
