// Messages of keys, as an OrderedAdmission and its owner see them.
import { copyProperties } from '../../../src/core/properties.js';
import type { ReceivedMessage } from '../../../src/core/message.js';

export const TOPIC = 'persistent://public/default/accounts';

export interface Place {
  readonly batchIndex?: number;
  readonly ledgerId?: number;
  readonly topic?: string;
}

/** Each call makes a copy of its own, as each arrival does. */
export function message(entryId: number, given: Partial<Omit<ReceivedMessage, 'id'>> & Place = {}): ReceivedMessage {
  const { batchIndex = -1, ledgerId = 1, topic = TOPIC, ...rest } = given;
  return {
    id: { ledgerId, entryId, partition: -1, batchIndex, batchSize: batchIndex < 0 ? 0 : 3, topic },
    payload: new Uint8Array(),
    properties: copyProperties({}),
    key: 'a',
    publishTimeMs: 0,
    redeliveryCount: 0,
    connection: 1,
    ...rest,
  };
}
