// Message ids of the official client, read from their serialized form, and made where none is at hand.
import { PulseworkError } from 'pulsework';
import type { MessageId } from 'pulsework';
import { expect, it } from 'vitest';
import type { OfficialModule } from '../../../src/transports/pulsar/official-client.js';
import { UNKNOWN_BATCH_SIZE, officialIdOf, portIdOf } from '../../../src/transports/pulsar/official-ids.js';
import { ALL_ODD, Violations } from '../../support/pulsar-client-stand-in/odd-behaviours.js';
import { StandInMessageId, messageIdStatics } from '../../support/pulsar-client-stand-in/stand-in-messages.js';

const plain: MessageId = { ledgerId: 7, entryId: 3, partition: -1, batchIndex: -1, batchSize: 0, topic: 't' };
const bytesOf = (...bytes: number[]) => ({ serialize: () => Uint8Array.from(bytes), toString: () => '' });
const topicOf = () => 't';

function module(violations = new Violations()): OfficialModule {
  return { MessageId: messageIdStatics(violations, ALL_ODD) } as unknown as OfficialModule;
}

it('reads all numbers of an id, up to 2^53-1', () => {
  for (const id of [
    plain,
    { ...plain, ledgerId: 2 ** 53 - 1, entryId: 2 ** 40, partition: 11 },
    { ...plain, batchIndex: 4, batchSize: 10 },
  ]) {
    const official = new StandInMessageId(id, true, { ...ALL_ODD, hidesBatchSize: false });
    expect(portIdOf(official, topicOf)).toEqual(id);
  }
});

it('a batch whose size is not told is taken for larger than any', () => {
  const official = new StandInMessageId({ ...plain, batchIndex: 4, batchSize: 10 }, true, ALL_ODD);
  expect(portIdOf(official, topicOf)).toEqual({ ...plain, batchIndex: 4, batchSize: UNKNOWN_BATCH_SIZE });
});

it('reads what a broker that dropped a repetition answers with', () => {
  const official = new StandInMessageId({ ...plain, ledgerId: -1, entryId: -1 }, true, ALL_ODD);
  expect(portIdOf(official, topicOf)).toEqual({ ...plain, ledgerId: -1, entryId: -1 });
});

it('passes over fields that it does not know, such as the first chunk of a chunked message', () => {
  expect(portIdOf(bytesOf(0x08, 7, 0x10, 3, 0x3a, 2, 0x08, 1), topicOf)).toEqual(plain);
});

it.each([
  ['a number that does not end', [0x08, 0xff]],
  ['no entry', [0x08, 7]],
  ['another wire type', [0x0d, 1, 2, 3, 4]],
  ['a number above 2^53-1', [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x10, 3]],
])('refuses %s', (_, bytes) => {
  expect(() => portIdOf(bytesOf(...bytes), topicOf)).toThrow(PulseworkError);
});

it('makes an id that the client can read, of the whole entry unless told otherwise (R8)', () => {
  const violations = new Violations();
  const known = (id: MessageId, options?: { withBatchIndex: boolean }) =>
    (officialIdOf(module(violations), id, options) as StandInMessageId).known;
  expect(known({ ...plain, partition: 2, batchIndex: 5, batchSize: 9 })).toEqual({ ...plain, partition: 2, topic: '' });
  expect(known({ ...plain, batchIndex: 5 }, { withBatchIndex: true })).toMatchObject({ batchIndex: 5 });
  expect(violations.list).toEqual([]);
});

it('an id that is none never reaches the client, which would end the process over it (R8, R11)', () => {
  const violations = new Violations();
  for (const ledgerId of [NaN, 1.5, 2 ** 60, '7' as unknown as number]) {
    expect(() => officialIdOf(module(violations), { ...plain, ledgerId })).toThrow(/message id field ledgerId/);
  }
  expect(violations.list).toEqual([]);
});
