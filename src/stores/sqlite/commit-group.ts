// What the broker's store writes with one commit, and whose receipts wait for it.
import type { StoredEntry } from '../../ports/broker-store.js';
import type { BrokerStatements, LedgerRow } from './broker-statements.js';
import { EntryWriter } from './entry-bytes.js';
import type { AckedBits, AckedIn, KeptCursor } from './kept-cursor.js';
import type { KeptTopic } from './kept-broker.js';

/** Of one commit: a burst of publishes does not hold up everything else in this process. */
const MAX_ENTRIES = 1_000;
const MAX_BYTES = 4 * 1024 * 1024;
/** Of one row. */
const MAX_BLOCK_BYTES = 256 * 1024;

interface Block {
  readonly topic: KeptTopic;
  readonly ledger: LedgerRow;
  readonly firstEntryId: number;
  readonly writer: EntryWriter;
  nextEntryId: number;
}

/** Entries that came together. Should their commit fail they are gone, and their publishers are told so. */
export class CommitGroup {
  readonly receipt: Promise<void>;
  #resolve: () => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;
  readonly #blocks: Block[] = [];
  /** The newest of each ledger. */
  readonly #open = new Map<LedgerRow, Block>();
  readonly #sequences = new Map<KeptTopic, Map<string, number>>();
  #entries = 0;
  #fullBytes = 0;

  constructor() {
    this.receipt = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // Some of what is waited for here nobody awaits.
    this.receipt.catch(() => undefined);
  }

  get isFull(): boolean {
    return this.#entries >= MAX_ENTRIES || this.#fullBytes >= MAX_BYTES;
  }

  append(topic: KeptTopic, ledger: LedgerRow, entryId: number, entry: StoredEntry): void {
    let block = this.#open.get(ledger);
    if (block === undefined || block.nextEntryId !== entryId || block.writer.length >= MAX_BLOCK_BYTES) {
      block = { topic, ledger, firstEntryId: entryId, nextEntryId: entryId, writer: new EntryWriter() };
      this.#open.set(ledger, block);
      this.#blocks.push(block);
    }
    const before = block.writer.length;
    block.writer.add(entry);
    block.nextEntryId += 1;
    this.#entries += 1;
    this.#fullBytes += block.writer.length - before;
  }

  sequence(topic: KeptTopic, producerName: string, sequenceId: number): void {
    const own = this.#sequences.get(topic) ?? new Map<string, number>();
    this.#sequences.set(topic, own.set(producerName, sequenceId));
  }

  write(sql: BrokerStatements): void {
    for (const { topic, ledger, firstEntryId, writer } of this.#blocks)
      if (!topic.isDropped) sql.putBlock(ledger.number, firstEntryId, writer.bytes);
    for (const [topic, own] of this.#sequences)
      if (!topic.isDropped) for (const [producer, sequenceId] of own) sql.putSequence(topic.id, producer, sequenceId);
  }

  stored(): void {
    this.#resolve();
  }

  failed(error: unknown): void {
    this.#reject(error);
  }
}

/** What is in memory only. Should a commit fail it stays so, and is written with the next one. */
export class Unwritten {
  /** In the order in which they came. Each may be made again. */
  readonly changes: ((sql: BrokerStatements) => void)[] = [];
  readonly cursors = new Set<KeptCursor>();
  readonly pages = new Set<AckedBits>();
  readonly parts = new Set<AckedBits>();
  /** Whether rows go with it: the file may be made smaller. */
  frees = false;

  get isEmpty(): boolean {
    return this.changes.length + this.cursors.size + this.pages.size + this.parts.size === 0;
  }

  add(acked: AckedIn): void {
    if (acked.kind === 'cursor') this.cursors.add(acked.row);
    else this[acked.kind === 'page' ? 'pages' : 'parts'].add(acked.row);
  }

  has(acked: AckedIn): boolean {
    if (acked.kind === 'cursor') return this.cursors.has(acked.row);
    return this[acked.kind === 'page' ? 'pages' : 'parts'].has(acked.row);
  }

  write(sql: BrokerStatements): void {
    for (const change of this.changes) change(sql);
    for (const cursor of this.cursors) if (!cursor.isDropped) sql.moveCursor(cursor);
    for (const page of this.pages) if (!page.isDropped) sql.putPage(page);
    for (const part of this.parts) {
      if (part.isDropped) sql.deletePart(part);
      else sql.putPart(part);
    }
    if (this.frees) sql.shrink();
  }

  /** What came after it is written after it. */
  addLater(later: Unwritten): void {
    this.changes.push(...later.changes);
    for (const cursor of later.cursors) this.cursors.add(cursor);
    for (const page of later.pages) this.pages.add(page);
    for (const part of later.parts) this.parts.add(part);
    this.frees ||= later.frees;
  }
}
