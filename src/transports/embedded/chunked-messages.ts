// The messages of one topic that come in chunks: joined before they are handed on, and settled with all of their entries.
import { DEFAULT_CHUNK_LIMITS, joinableChunk } from '../../chunks/chunk.js';
import { ChunkJoiner } from '../../chunks/chunk-joiner.js';
import type { ChunkVerdict } from '../../chunks/chunk-joiner.js';
import { ChunkedAcks, ChunkedMessage } from '../../chunks/chunked-acks.js';
import { UnreadableEntries } from '../../chunks/unreadable-entries.js';
import type { ReceivedMessage } from '../../core/message.js';
import type { EntryPosition, MessageId } from '../../core/message-id.js';
import { partitionOf } from '../../core/topic-name.js';
import type { SeekTarget } from '../../core/topic-parts.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { ChunkOrigin } from '../../broker/entry.js';

export interface ChunkedMessagesParts {
  /** Full name, with its partition. */
  readonly topic: string;
  readonly clock: Clock;
  readonly logger: Logger | undefined;
  /** Whether the broker may send more now. */
  readonly mayArrive: () => boolean;
  /** Acknowledges entries that nobody needs. Neither of these two may do so at once: the broker is sending. */
  readonly discard: (ids: readonly MessageId[]) => void;
  readonly askBack: (ids: readonly MessageId[]) => void;
  /** Gives entries back uncounted, where keys move between consumers; undefined elsewhere. */
  readonly giveBack: ((ids: readonly MessageId[]) => void) | undefined;
}

const NO_BYTES = new Uint8Array(0);
const NONE: readonly ChunkedMessage[] = [];

export class ChunkedMessages {
  readonly #parts: ChunkedMessagesParts;
  readonly #partition: number;
  readonly #acks = new ChunkedAcks();
  readonly #joiner: ChunkJoiner;
  readonly #unreadable: UnreadableEntries;

  constructor(parts: ChunkedMessagesParts) {
    this.#parts = parts;
    const { topic, clock, logger, mayArrive, discard, giveBack } = parts;
    this.#partition = partitionOf(topic);
    this.#unreadable = new UnreadableEntries(topic, logger);
    this.#joiner = new ChunkJoiner({
      ...{ limits: DEFAULT_CHUNK_LIMITS, acks: this.#acks, clock, mayArrive },
      gaveUp: ([first], reason) => (first === undefined ? undefined : this.#unreadable.tell(first, reason)),
      giveBack: giveBack && ((entries) => giveBack(entries.map((entry) => this.#idOf(entry)))),
      needless: (entries) => discard(entries.map((entry) => this.#idOf(entry))),
    });
  }

  /** One part came. @returns the message once all of it is here. */
  arrived(part: ReceivedMessage, of: ChunkOrigin): ReceivedMessage | undefined {
    const { id, producerName = '', publishTimeMs, payload } = part;
    const bytes = payload?.length ?? 0;
    const entry = { producerName, publishTimeMs, bytes, uncompressedBytes: 0 };
    const chunk = joinableChunk(of, entry, DEFAULT_CHUNK_LIMITS.maxMessageBytes);
    if (typeof chunk === 'string') {
      this.#unreadable.tell(id, chunk);
      return undefined;
    }
    const { ledgerId, entryId, partition } = id;
    const position = { ledgerId, entryId, partition };
    const verdict = this.#joiner.add(position, chunk, payload ?? NO_BYTES);
    if (verdict.kind === 'joined') return this.#joined(part, chunk, verdict);
    if (verdict.kind === 'needless') this.#parts.discard([id]);
    if (verdict.kind === 'ask-back') this.#parts.askBack(verdict.entries.map((one) => this.#idOf(one)));
    if (verdict.kind === 'unreadable') this.#unreadable.tell(id, verdict.reason);
    return undefined;
  }

  /** Those of `ids` whose messages came in chunks: their acknowledgement is on its way once `entriesOf` was asked. */
  among(ids: readonly MessageId[]): readonly ChunkedMessage[] {
    if (!ids.some((id) => this.#acks.get(id) !== undefined)) return NONE;
    return ids.map((id) => this.#acks.get(id)).filter((message) => message !== undefined);
  }

  /** What acknowledges `ids`. */
  entriesOf(ids: readonly MessageId[]): readonly MessageId[] {
    return ids.flatMap((id) => {
      const message = this.#acks.get(id);
      return message === undefined ? [id] : message.entriesToAcknowledge().map((entry) => this.#idOf(entry));
    });
  }

  /** As ids of this topic. */
  idsOf(entries: readonly EntryPosition[]): readonly MessageId[] {
    return entries.map((entry) => this.#idOf(entry));
  }

  /** The broker has it: these are acknowledged. */
  confirmed(messages: readonly ChunkedMessage[]): void {
    for (const message of messages) this.#acks.confirmed(message);
  }

  /** Everything up to `id` is acknowledged. */
  acknowledgedThrough(id: MessageId): void {
    this.#acks.acknowledgedThrough(id);
  }

  /** These go back to the broker. @returns their entries. */
  gaveBack(ids: readonly MessageId[]): readonly MessageId[] {
    if (this.among(ids).length === 0) return ids;
    return this.#acks.gaveBack(ids).map((entry) => this.#idOf(entry));
  }

  /** A message in chunks begins at its first one. */
  seekTarget(to: SeekTarget): SeekTarget {
    if (typeof to !== 'object' || to instanceof Date) return to;
    const first = to.firstChunk ?? this.#acks.get(to)?.first;
    return first === undefined ? to : this.#idOf(first);
  }

  /** Messages of which a part is here: all of it comes again, or goes to another consumer. */
  forgetIncomplete(): void {
    this.#joiner.reset();
  }

  /** A new connection: everything comes again. */
  connected(): void {
    this.#acks.registered();
  }

  #joined(
    part: ReceivedMessage,
    { key, publishTimeMs }: { readonly key: string; readonly publishTimeMs: number },
    { message: joined, askedBack }: Extract<ChunkVerdict, { kind: 'joined' }>,
  ): ReceivedMessage {
    const { first, last, entries, payload } = joined;
    this.#acks.joined(new ChunkedMessage({ key, publishTimeMs, first, last }, entries));
    return {
      ...part,
      id: { ...this.#idOf(last), firstChunk: first },
      payload: part.payload === null ? null : new Uint8Array(payload.buffer, payload.byteOffset, payload.length),
      redeliveryCount: Math.max(0, part.redeliveryCount - askedBack),
    };
  }

  #idOf({ ledgerId, entryId }: EntryPosition): MessageId {
    return {
      ...{ ledgerId, entryId, partition: this.#partition },
      ...{ batchIndex: -1, batchSize: 0, topic: this.#parts.topic },
    };
  }
}
