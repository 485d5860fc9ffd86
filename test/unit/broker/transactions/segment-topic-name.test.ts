// Names of segments, by the rule T-48.
import { describe, expect, it } from 'vitest';
import {
  formatSegmentTopicName,
  isSegmentTopic,
  parseSegmentTopicName,
} from '../../../../src/broker/transactions/segment-topic-name.js';

const NAME = 'segment://shop/eu/orders/0000-7fff-3';
const PARTS = { tenant: 'shop', namespace: 'eu', topic: 'orders', hashStart: 0, hashEnd: 0x7fff, segmentId: 3 };

describe('T-48: a segment is segment://<tenant>/<namespace>/<topic>/<hexStart>-<hexEnd>-<id>', () => {
  it('is read and written, with four digits for hashes', () => {
    expect(parseSegmentTopicName(NAME)).toEqual(PARTS);
    expect(formatSegmentTopicName(PARTS)).toBe(NAME);
    expect(formatSegmentTopicName({ ...PARTS, hashStart: 0xab, hashEnd: 0xffff, segmentId: 12345 })).toBe(
      'segment://shop/eu/orders/00ab-ffff-12345',
    );
  });

  it('is written in one way only, however it was given', () => {
    const given = parseSegmentTopicName('segment://shop/eu/orders/0-FFFF-7');

    expect(formatSegmentTopicName(given)).toBe('segment://shop/eu/orders/0000-ffff-7');
  });

  it('may be of a topic that has slashes and dashes', () => {
    const name = 'segment://shop/eu/orders/of-today/8000-ffff-1';

    expect(parseSegmentTopicName(name)).toMatchObject({ topic: 'orders/of-today', hashStart: 0x8000, segmentId: 1 });
    expect(formatSegmentTopicName(parseSegmentTopicName(name))).toBe(name);
  });

  it('is known by its domain', () => {
    expect(isSegmentTopic(NAME)).toBe(true);
    expect(isSegmentTopic('persistent://shop/eu/orders/0000-7fff-3')).toBe(false);
    expect(isSegmentTopic('topic://shop/eu/orders')).toBe(false);
    expect(() => parseSegmentTopicName('persistent://shop/eu/orders/0000-7fff-3')).toThrow(/start with segment:/);
  });

  it.each([
    'segment://shop/eu/orders',
    'segment://shop/eu',
    'segment://shop',
    'segment://',
    'segment://shop//orders/0000-7fff-3',
    'segment:///eu/orders/0000-7fff-3',
    'segment://shop/eu/0000-7fff-3',
    'segment://shop/eu/orders/',
    'segment://shop/eu//0000-7fff-3',
  ])('is refused without its parts: %s', (name) => {
    expect(() => parseSegmentTopicName(name)).toThrow(
      expect.objectContaining({
        code: 'TOPIC_NAME_INVALID',
        message:
          'Invalid segment topic name: local name must contain ' +
          `'<parent-topic>/<hashStart>-<hashEnd>-<segmentId>'. Got: ${name}`,
      }) as Error,
    );
  });

  it.each([
    '0000-7fff',
    '0000-7fff-',
    '0000-7fff-x',
    '-7fff-3',
    '0000-7fff--3',
    '0000-10000-3',
    '000g-7fff-3',
    '7fff-0000-3',
    '0000-7fff-3-4',
    '0000-7fff-99999999999999999999',
    ' 0000-7fff-3',
  ])('is refused with a descriptor that is none: %s', (descriptor) => {
    expect(() => parseSegmentTopicName(`segment://shop/eu/orders/${descriptor}`)).toThrow(
      expect.objectContaining({
        code: 'TOPIC_NAME_INVALID',
        message: `Invalid segment descriptor: expected '<hexStart>-<hexEnd>-<segmentId>', got: '${descriptor}'`,
      }) as Error,
    );
  });
});
