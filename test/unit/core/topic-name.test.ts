import { describe, expect, it } from 'vitest';
import {
  deadLetterTopicName,
  fullTopicName,
  localName,
  namespaceProblem,
  partitionName,
  partitionOf,
  retryTopicName,
  withoutPartition,
} from '../../../src/core/topic-name.js';
import { topic } from '../../../src/core/topic.js';

describe('full names', () => {
  it.each([
    ['orders', 'persistent://public/default/orders'],
    ['acme/prod/orders', 'persistent://acme/prod/orders'],
    ['persistent://acme/prod/orders', 'persistent://acme/prod/orders'],
    ['non-persistent://acme/prod/orders', 'non-persistent://acme/prod/orders'],
    ['bestellungen-größe', 'persistent://public/default/bestellungen-größe'],
    ['__proto__', 'persistent://public/default/__proto__'],
  ])('%s is %s (S-41)', (name, full) => {
    expect(fullTopicName(name)).toBe(full);
  });

  it('puts a short name into the namespace given', () => {
    expect(fullTopicName('orders', 'acme/prod')).toBe('persistent://acme/prod/orders');
  });

  it('leaves a name with its own namespace there', () => {
    expect(fullTopicName('a/b/c', 'acme/prod')).toBe('persistent://a/b/c');
  });

  it.each([
    '',
    ' ',
    'a/b',
    'a/b/c/d',
    '/a',
    'a//c',
    'persistent://a',
    'persistent://a/b',
    'http://a/b/c',
    'segment://a/b/c',
  ])('refuses %j with a rule (S-41)', (name) => {
    expect(() => fullTopicName(name)).toThrow(
      expect.objectContaining({
        code: 'TOPIC_NAME_INVALID',
        message: expect.stringMatching(/is not valid: ./) as string,
      }),
    );
  });

  it('refuses what is no text', () => {
    expect(() => fullTopicName(undefined as never)).toThrow(/topic name undefined is not valid: it must be a text/);
  });
});

describe('namespaces', () => {
  it('must be tenant/namespace', () => {
    expect(namespaceProblem('acme/prod')).toBeUndefined();
  });

  it.each(['acme', 'a/b/c', '/b', 'a/', 'a b/c', '', 5, undefined])('%j is refused', (namespace) => {
    expect(namespaceProblem(namespace)).toMatch(/^"namespace" must be "tenant\/namespace", got /);
  });
});

describe('partitions', () => {
  it.each([
    ['persistent://a/b/t-partition-0', 0],
    ['persistent://a/b/t-partition-12', 12],
    ['persistent://a/b/t', -1],
    ['persistent://a/b/t-partition-01', -1],
    ['persistent://a/b/t-partition--1', -1],
    ['persistent://a/b/t-partition-', -1],
    ['persistent://a/b/t-partition-1-DLQ', -1],
  ])('%s is partition %i (S-40)', (topic, partition) => {
    expect(partitionOf(topic)).toBe(partition);
  });

  it('gives the name of a partition', () => {
    expect(partitionName('persistent://a/b/t', 3)).toBe('persistent://a/b/t-partition-3');
  });

  it('leaves the name of a partition as it is (S-40)', () => {
    expect(partitionName('persistent://a/b/t-partition-1', 3)).toBe('persistent://a/b/t-partition-1');
  });

  it('takes the partition off, once', () => {
    expect(withoutPartition('t-partition-1-partition-2')).toBe('t-partition-1');
  });
});

describe('derived names', () => {
  it('names the dead letter topic as Java does, without the partition (D-08)', () => {
    expect(deadLetterTopicName('persistent://a/b/t-partition-4', 'billing')).toBe('persistent://a/b/t-billing-DLQ');
    expect([deadLetterTopicName(topic('t'), 'billing'), retryTopicName(topic('t'), 'billing')]).toEqual([
      't-billing-DLQ',
      't-billing-RETRY',
    ]);
  });

  it('shows people the last part', () => {
    expect([localName('persistent://a/b/orders'), localName('orders')]).toEqual(['orders', 'orders']);
  });
});
