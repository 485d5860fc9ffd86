// The client's ids of what is unsettled: kept as long as they are needed and no longer.
import type { MessageId } from 'pulsework';
import { expect, it } from 'vitest';
import { UnsettledIds } from '../../../src/transports/pulsar/unsettled-ids.js';

const idOf = (entryId: number, batchIndex = -1): MessageId => ({
  ledgerId: 1,
  entryId,
  partition: -1,
  batchIndex,
  batchSize: batchIndex < 0 ? 0 : 3,
  topic: 't',
});
const official = (name: string) => ({ serialize: () => new Uint8Array(), toString: () => name });

function withBatch(): UnsettledIds {
  const ids = new UnsettledIds();
  for (const index of [0, 1, 2]) ids.received(idOf(1, index), official(`b${index}`));
  return ids;
}

it('a message that is alone is forgotten once it is acknowledged or handed back', () => {
  const ids = new UnsettledIds();
  for (const entry of [1, 2]) ids.received(idOf(entry), official(`m${entry}`));
  expect(ids.acknowledged(idOf(1))).toBe(true);
  ids.handedBack('1:2');
  expect([ids.size, ids.find(idOf(1)), ids.any()]).toEqual([0, undefined, undefined]);
});

it('a batch is asked back with any of its messages that is unsettled, until none is', () => {
  const ids = withBatch();
  expect(ids.acknowledged(idOf(1, 0))).toBe(false);
  expect(String(ids.unsettledOf(idOf(1)))).toBe('b1');
  ids.acknowledged(idOf(1, 1));
  expect(ids.acknowledged(idOf(1, 2))).toBe(true);
  expect(ids.unsettledOf(idOf(1))).toBeUndefined();
});

it('a message of a batch can be acknowledged again, and after its entry was handed back', () => {
  const ids = withBatch();
  ids.acknowledged(idOf(1, 0));
  ids.handedBack('1:1');
  expect(String(ids.find(idOf(1, 0)))).toBe('b0');
  expect(ids.unsettledOf(idOf(1))).toBeUndefined();
});

it('the newest id of a message counts: an older one belongs to a connection that is gone', () => {
  const ids = new UnsettledIds();
  ids.received(idOf(1), official('old'));
  ids.received(idOf(1), official('new'));
  expect(String(ids.find(idOf(1)))).toBe('new');
});

it('what a cumulative acknowledgement covers is settled, batches in part', () => {
  const ids = withBatch();
  ids.received(idOf(0), official('before'));
  ids.received(idOf(2), official('after'));
  ids.acknowledgedUpTo(idOf(1, 1));
  expect(ids.find(idOf(0))).toBeUndefined();
  expect(String(ids.unsettledOf(idOf(1)))).toBe('b2');
  expect(String(ids.find(idOf(2)))).toBe('after');
});

it('what has not come again when the next connection is lost too is forgotten: another consumer has it', () => {
  const ids = withBatch();
  ids.received(idOf(2), official('elsewhere'));
  ids.connectionLost();
  expect(String(ids.find(idOf(2)))).toBe('elsewhere');
  ids.received(idOf(1, 0), official('again'));
  ids.connectionLost();
  expect([String(ids.find(idOf(1, 0))), ids.find(idOf(2)), ids.size]).toEqual(['again', undefined, 1]);
  ids.connectionLost();
  expect(ids.size).toBe(0);
});

it('of batches that are done no more than 1,000 are remembered', () => {
  const ids = new UnsettledIds();
  for (let entry = 0; entry < 3_000; entry++) {
    ids.received(idOf(entry, 0), official('x'));
    ids.acknowledged(idOf(entry, 0));
  }
  expect([ids.size, ids.find(idOf(0, 0))]).toEqual([1_000, undefined]);
});
