// Message ids of the official client and of the port. The client's id has no fields; the only safe way to them is its
// serialized form, four numbers in protobuf. The way back is for ids that were checked: what cannot be parsed ends the process.
import { PulseworkError } from '../../core/errors.js';
import type { MessageId } from '../../core/message-id.js';
import { checkMessageId } from '../../core/message-id.js';
import type { OfficialMessageId, OfficialModule } from './official-client.js';

/**
 * The client does not tell how many messages an entry holds. This says that it is a batch, and more than any has: what is
 * counted down to is never reached, so nothing is taken for done too early.
 */
export const UNKNOWN_BATCH_SIZE = 2 ** 31 - 1;

/** Fields of MessageIdData. */
const LEDGER = 1;
const ENTRY = 2;
const PARTITION = 3;
const BATCH_INDEX = 4;
const BATCH_SIZE = 6;

const VARINT = 0;
const LENGTH_DELIMITED = 2;
/** -1 in 64 bits, as a number: what a broker that drops a repetition answers with. What lies between is above 2^53-1. */
const MINUS_ONE = 2 ** 64;

/** @param topicOf the full topic name for a partition, -1 for none. @throws PulseworkError MESSAGE_ID_INVALID. */
export function portIdOf(id: OfficialMessageId, topicOf: (partition: number) => string): MessageId {
  const fields = readFields(id.serialize());
  const partition = fields[PARTITION] ?? -1;
  const batchIndex = fields[BATCH_INDEX] ?? -1;
  const batchSize = fields[BATCH_SIZE] ?? 0;
  const result = {
    ledgerId: required(fields[LEDGER]),
    entryId: required(fields[ENTRY]),
    partition,
    batchIndex,
    batchSize: batchIndex < 0 ? 0 : batchSize > 0 ? batchSize : UNKNOWN_BATCH_SIZE,
    topic: topicOf(partition),
  };
  checkMessageId(result);
  return result;
}

/**
 * Of the entry as a whole, unless told otherwise: to acknowledge, an index without its batch means the whole entry anyway.
 * @throws PulseworkError MESSAGE_ID_INVALID.
 */
export function officialIdOf(
  { MessageId: ids }: OfficialModule,
  id: MessageId,
  { withBatchIndex = false }: { readonly withBatchIndex?: boolean } = {},
): OfficialMessageId {
  checkMessageId(id);
  const fields = [
    [LEDGER, id.ledgerId],
    [ENTRY, id.entryId],
  ] as const;
  const bytes = fields.flatMap(([field, value]) => [field << 3, ...varint(BigInt.asUintN(64, BigInt(value)))]);
  if (id.partition >= 0) bytes.push(PARTITION << 3, ...varint(BigInt(id.partition)));
  if (withBatchIndex && id.batchIndex >= 0) bytes.push(BATCH_INDEX << 3, ...varint(BigInt(id.batchIndex)));
  return ids.deserialize(Buffer.from(bytes));
}

/** Numbers by field; other fields are passed over. This is done for each message: no BigInt, no Map. */
function readFields(bytes: Uint8Array): readonly (number | undefined)[] {
  const fields: (number | undefined)[] = [];
  let at = 0;
  const next = (): number => {
    let value = 0;
    for (let unit = 1; unit < MINUS_ONE; unit *= 0x80) {
      const byte = bytes[at];
      at += 1;
      if (byte === undefined) break;
      value += (byte & 0x7f) * unit;
      if (byte < 0x80) return value === MINUS_ONE ? -1 : value;
    }
    throw unreadable();
  };
  while (at < bytes.length) {
    const tag = next();
    const wireType = tag % 8;
    if (wireType !== VARINT && wireType !== LENGTH_DELIMITED) throw unreadable();
    const value = next();
    const field = Math.floor(tag / 8);
    if (wireType === LENGTH_DELIMITED) at += value;
    else if (field <= BATCH_SIZE) fields[field] = value;
  }
  return fields;
}

function unreadable(): PulseworkError {
  return new PulseworkError('MESSAGE_ID_INVALID', 'a message id of "pulsar-client" has a form that is not known');
}

function required(value: number | undefined): number {
  if (value === undefined) throw unreadable();
  return value;
}

function varint(value: bigint): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return bytes;
}
