// The partitions in a list of topics.
import { expect, it } from 'vitest';
import { attachable, listedPartitions } from '../../../src/transports/wire/listed-topics.js';

const full = (local: string): string => `persistent://public/default/${local}`;

it('partitions that are listed one by one stand for all partitions of their topic, once', () => {
  const listed = [full('a'), full('b-partition-0'), full('b-partition-2'), full('b'), full('c-partition-0')];

  expect(listedPartitions(listed)).toEqual(
    new Map([
      [full('b'), 2],
      [full('c'), 1],
    ]),
  );
  expect(
    attachable(
      listed,
      new Map([
        [full('b'), 3],
        [full('c'), 0],
      ]),
    ),
  ).toEqual([full('a'), full('b-partition-0'), full('b-partition-1'), full('b-partition-2'), full('c-partition-0')]);
});
