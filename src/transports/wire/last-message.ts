// How far a topic goes and how far its subscription has come, as the broker says when it is asked.
import { checkMessageId } from '../../core/message-id.js';
import type { EntryPosition, MessageId } from '../../core/message-id.js';
import type { Connection } from './connection.js';
import { connectionLost } from './server-errors.js';

export interface LastMessage {
  /** Undefined while the topic has none. */
  readonly last: MessageId | undefined;
  /** The broker sends what lies behind it, at first; undefined where the broker does not tell. */
  readonly behind: Pick<EntryPosition, 'ledgerId' | 'entryId'> | undefined;
}

export interface AskingConsumer {
  /** Full name, with its partition. */
  readonly topic: string;
  readonly partition: number;
  readonly consumerId: number;
}

/** @throws TransportError; PulseworkError MESSAGE_ID_INVALID above 2^53-1. */
export async function askLastMessage(connection: Connection, asking: AskingConsumer): Promise<LastMessage> {
  const { topic, partition, consumerId } = asking;
  const answer = await connection.request('GET_LAST_MESSAGE_ID', { consumerId }, topic);
  if (answer.name !== 'GET_LAST_MESSAGE_ID_RESPONSE') {
    throw connectionLost(`last message id of ${topic}: the broker answered ${answer.name}`);
  }
  const { lastMessageId, consumerMarkDeletePosition: behind } = answer.body;
  const { ledgerId, entryId, batchIndex = -1 } = lastMessageId;
  if (entryId < 0) return { last: undefined, behind };
  const last = { ledgerId, entryId, partition, batchIndex, batchSize: batchIndex + 1, topic };
  checkMessageId(last);
  return { last, behind };
}
