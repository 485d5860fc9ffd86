// The official client's errors are texts; what they mean.
import { TransportError } from 'pulsework';
import { expect, it } from 'vitest';
import {
  closeQuietly,
  publishError,
  resultOf,
  transportError,
} from '../../../src/transports/pulsar/official-errors.js';

it.each([
  ['Failed to create consumer: ConsumerBusy', 'CONSUMER_BUSY', true],
  ['Failed to create producer: ProducerBusy', 'PRODUCER_BUSY', true],
  ['Failed to send message: ResultProducerFenced', 'PRODUCER_FENCED', false],
  ['Failed to send message: MessageTooBig', 'MESSAGE_TOO_LARGE', false],
  ['Failed to send message: TopicTerminated', 'TOPIC_TERMINATED', false],
  ['Failed to create consumer: TopicNotFound', 'TOPIC_NOT_FOUND', false],
  ['Failed to create consumer: InvalidTopicName', 'TOPIC_NAME_INVALID', false],
  ['Failed to create consumer: TimeOut', 'CONNECTION_LOST', true],
  ['Failed to create consumer: ConnectError', 'CONNECTION_LOST', true],
  ['Failed to acknowledge id: ResultDisconnected', 'CONNECTION_LOST', true],
  ['Failed to acknowledge id: AlreadyClosed', 'ALREADY_CLOSED', false],
  ['Failed to create consumer: AuthenticationError', 'AUTHENTICATION_FAILED', false],
  ['Failed to create consumer: AuthorizationError', 'NOT_ALLOWED', false],
  ['Failed to create consumer: ResultConsumerAssignError', 'NOT_ALLOWED', false],
  ['Failed to seek message by id: ResultNotAllowedError', 'NOT_ALLOWED', false],
  ['Failed to acknowledge cumulatively: ResultCumulativeAcknowledgementNotAllowedError', 'NOT_SUPPORTED', false],
  ['Failed to create producer: IncompatibleSchema', 'SCHEMA_INCOMPATIBLE', false],
  ['Failed to send message: ResultMemoryBufferIsFull', 'BROKER_ERROR', true],
  ['GetPartitionsForTopic: LookupError', 'BROKER_ERROR', true],
  ['Failed to create consumer: SomethingOfALaterVersion', 'BROKER_ERROR', true],
  ['something else entirely', 'BROKER_ERROR', true],
])('%s is %s, retriable: %s (R11)', (text, code, retriable) => {
  const cause = new Error(text);
  expect(transportError('the call', cause)).toMatchObject({ code, retriable, cause, message: `the call: ${text}` });
});

it('a Result is read with and without the word Result before it', () => {
  expect(resultOf(new Error('Failed to x: ResultInterrupted'))).toBe('Interrupted');
  expect(resultOf(new Error('Failed to x: TimeOut'))).toBe('TimeOut');
  expect(resultOf('no error: TimeOut')).toBeUndefined();
});

it('a send without a receipt in time may have been stored: it is repeated, not refused', () => {
  const error = publishError('t', new Error('Failed to send message: TimeOut'));
  expect(error).toMatchObject({ code: 'CALL_TIMED_OUT', retriable: true });
});

it('an error of this library is passed on as it is', () => {
  const error = new TransportError('NOT_SUPPORTED', 'x', { retriable: false });
  expect(transportError('the call', error)).toBe(error);
});

it('closing what is closed is no failure, anything else is', async () => {
  await closeQuietly(Promise.reject(new Error('Failed to close consumer: AlreadyClosed')), 'x');
  const failing = closeQuietly(Promise.reject(new Error('Failed to close consumer: UnknownError')), 'closing');
  await expect(failing).rejects.toMatchObject({ code: 'BROKER_ERROR' });
});
