// Messages into the addon and out of it: what it would change, cut off or end the process over.
import type { EncodedMessage } from 'pulsework';
import { expect, it } from 'vitest';
import type { OfficialMessage } from '../../../src/transports/pulsar/official-client.js';
import { officialMessageOf } from '../../../src/transports/pulsar/outgoing-message.js';
import { receivedMessageOf } from '../../../src/transports/pulsar/received-message.js';

const id = { ledgerId: 1, entryId: 2, partition: -1, batchIndex: -1, batchSize: 0, topic: 't' };
const outgoing = (more: Partial<EncodedMessage> = {}, sequenceId = 0) =>
  officialMessageOf('t', { payload: Buffer.from('a'), properties: {}, ...more }, sequenceId, 1_000);

const refused: readonly (readonly [string, Partial<EncodedMessage>, string])[] = [
  ['a null value', { payload: null }, 'NOT_SUPPORTED'],
  ['a key of bytes', { key: Uint8Array.of(1) }, 'NOT_SUPPORTED'],
  ['a NUL in the key', { key: 'a\0b' }, 'NOT_SUPPORTED'],
  ['an ordering key that is no text', { orderingKey: Uint8Array.of(0xff) }, 'NOT_SUPPORTED'],
  ['a NUL in the ordering key', { orderingKey: Uint8Array.of(65, 0) }, 'NOT_SUPPORTED'],
  ['a NUL in the name of a property', { properties: { 'a\0': 'b' } }, 'NOT_SUPPORTED'],
  ['a NUL in a property', { properties: { a: 'b\0' } }, 'NOT_SUPPORTED'],
  ['a negative event time', { eventTimeMs: -1 }, 'NOT_SUPPORTED'],
  ['an endless delivery time', { deliverAtMs: Infinity }, 'NOT_SUPPORTED'],
  ['more bytes than the broker takes', { payload: new Uint8Array(1_001) }, 'MESSAGE_TOO_LARGE'],
  [
    'more with its properties',
    { payload: new Uint8Array(900), properties: { a: 'x'.repeat(100) } },
    'MESSAGE_TOO_LARGE',
  ],
];

it('keys and properties beyond what the client takes safely are refused, many small ones too (R11)', () => {
  const many = Object.fromEntries(Array.from({ length: 4_000 }, (_, i) => [`${i}`, '']));
  for (const more of [{ key: 'k'.repeat(33_000) }, { properties: { a: 'ö'.repeat(17_000) } }, { properties: many }]) {
    const message = { payload: Buffer.from('a'), properties: {}, ...more };
    const refusal = expect.objectContaining({ code: 'MESSAGE_TOO_LARGE', retriable: false });
    expect(() => officialMessageOf('t', message, 0, 5_000_000)).toThrow(refusal);
  }
  const most = { payload: Buffer.alloc(100_000), properties: { a: 'x'.repeat(32_000) } };
  expect(officialMessageOf('t', most, 0, 5_000_000).data).toHaveLength(100_000);
});

it.each(refused)('%s is refused for good before the addon sees it (R11)', (_, more, code) => {
  expect(() => outgoing(more)).toThrow(expect.objectContaining({ code, retriable: false }));
});

it.each([-1, 0.5, NaN, 2 ** 60])('sequence id %s is refused: a negative one ends the process (R11)', (sequenceId) => {
  expect(() => outgoing({}, sequenceId)).toThrow(expect.objectContaining({ code: 'CONFIGURATION_INVALID' }));
});

it('what is there is sent, and what is not there is left out', () => {
  expect(outgoing({}, 7)).toEqual({ data: Buffer.from('a'), properties: {}, sequenceId: 7 });
  const full = outgoing({
    key: 'k',
    orderingKey: Buffer.from('Ö'),
    eventTimeMs: 5,
    deliverAtMs: 6.2,
    properties: { a: 'b' },
  });
  expect(full).toMatchObject({ partitionKey: 'k', orderingKey: 'Ö', eventTimestamp: 5, deliverAt: 7 });
  expect({ ...full.properties }).toEqual({ a: 'b', 'pulsework-deliver-at': '7' });
});

it('what was inherited by the properties is not sent', () => {
  const properties = Object.create({ inherited: 'x' }) as Record<string, string>;
  properties['own'] = 'y';
  expect({ ...outgoing({ properties }).properties }).toEqual({ own: 'y' });
});

function arrival(properties: unknown, more: Partial<OfficialMessage> = {}) {
  const message: OfficialMessage = {
    getTopicName: () => 't',
    getProperties: () => properties,
    getData: () => Buffer.from('a'),
    getMessageId: () => ({ serialize: () => new Uint8Array(), toString: () => '' }),
    getPublishTimestamp: () => 10,
    getEventTimestamp: () => 0,
    getRedeliveryCount: () => 2,
    getPartitionKey: () => '',
    getOrderingKey: () => '',
    getProducerName: () => 'p',
    ...more,
  };
  return receivedMessageOf(message, id, 3);
}

/** As the addon does it. */
function arrayOf(properties: Readonly<Record<string, string>>): unknown {
  return Object.assign([], properties);
}

it('texts that are empty are absent, and so are times of 0', () => {
  expect(arrival([])).toMatchObject({
    id,
    connection: 3,
    key: undefined,
    orderingKey: undefined,
    eventTimeMs: undefined,
    publishTimeMs: 10,
    redeliveryCount: 2,
    producerName: 'p',
  });
});

it('properties are read by name: an array whose length is four thousand million costs nothing', () => {
  const { properties } = arrival(arrayOf({ a: '1', '4294967294': '2', '4294967295': '3', constructor: '4' }));
  expect({ ...properties }).toEqual({ a: '1', '4294967294': '2', '4294967295': '3', constructor: '4' });
  expect(Object.getPrototypeOf(properties)).toBeNull();
});

it('a property called length that became the length of the array is found again', () => {
  expect({ ...arrival(arrayOf({ a: '1', length: '7' })).properties }).toEqual({ a: '1', length: '7' });
});

it('properties that throw are none, with the reason: an absence would look like an answer', () => {
  const read = arrival(undefined, {
    getProperties: () => {
      throw new RangeError('Invalid array length');
    },
  });
  expect([{ ...read.properties }, read.unreadable]).toEqual([{}, expect.stringContaining('Invalid array length')]);
  expect(arrival(null).unreadable).toContain('properties');
});

it('the delivery time is taken from where it travelled, and a wrong one stays what it is', () => {
  const read = arrival(arrayOf({ 'pulsework-deliver-at': '1234', a: '1' }));
  expect([read.deliverAtMs, { ...read.properties }]).toEqual([1234, { a: '1' }]);
  const wrong = arrival(arrayOf({ 'pulsework-deliver-at': 'soon' }));
  expect([wrong.deliverAtMs, { ...wrong.properties }]).toEqual([undefined, { 'pulsework-deliver-at': 'soon' }]);
});
