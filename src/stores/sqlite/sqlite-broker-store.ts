// The topics of an embedded broker in one SQLite file. What comes while a commit runs, or in one turn, shares the next commit
// and so one fsync: entries of a ledger are one row then, acknowledgements some bits. Receipts come behind it.
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { PulseworkError, TransportError, isClosed } from '../../core/errors.js';
import type {
  AcknowledgementRecord,
  BrokerChange,
  DurableBrokerStore,
  EntryAddress,
  Stored,
  StoredBroker,
  StoredEntry,
} from '../../ports/broker-store.js';
import type { MetadataStore } from '../../ports/metadata-store.js';
import { applyChange } from './broker-changes.js';
import { BrokerStatements } from './broker-statements.js';
import type { LedgerRow } from './broker-statements.js';
import { CommitGroup, Unwritten } from './commit-group.js';
import type { KeptBroker, KeptTopic } from './kept-broker.js';
import { readBroker } from './kept-broker.js';
import { sqliteError } from './sqlite-errors.js';
import { SqliteFile, sharedFile } from './sqlite-file.js';
import type { SqliteFileOptions } from './sqlite-file.js';
import { SqliteMetadataStore } from './sqlite-metadata-store.js';

export interface SqliteBrokerStoreSettings extends SqliteFileOptions {
  /** Made where it does not exist. */
  readonly dir: string;
}

export class SqliteBrokerStore implements DurableBrokerStore {
  readonly name: string;
  readonly metadata: MetadataStore;
  readonly #dir: string;
  readonly #file: SqliteFile;
  #sql: BrokerStatements | undefined;
  /** A broker has it. */
  #isTaken = false;
  #kept: KeptBroker = { topics: new Map(), lastTopic: 0, lastCursor: 0, lastLedgerNumber: 0 };
  #unwritten = new Unwritten();
  /** Of the commit that runs. */
  #writing: Unwritten | undefined;
  /** Those whose commit has not begun. */
  readonly #groups: CommitGroup[] = [];
  #committing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  /** Settings that were checked. */
  constructor(settings: SqliteBrokerStoreSettings) {
    this.name = settings.name;
    this.#dir = settings.dir;
    this.#file = new SqliteFile(settings);
    this.metadata = new SqliteMetadataStore(
      { ...settings, pollIntervalMs: Infinity },
      sharedFile(this.#file, this.name),
    );
  }

  async open(): Promise<StoredBroker> {
    // Two brokers would each believe of the file what only they have written.
    if (this.#isTaken) throw taken(this.name);
    this.#isTaken = true;
    try {
      return await this.#open();
    } catch (error) {
      this.#isTaken = false;
      throw error;
    }
  }

  async #open(): Promise<StoredBroker> {
    await makeFolder(this.#dir, this.name);
    const sql = new BrokerStatements(await this.#file.open());
    await this.metadata.open();
    const { kept, stored } = await this.#file.read(() => readBroker(this.name, sql));
    this.#kept = kept;
    this.#sql = sql;
    return stored;
  }

  append({ topic: name, ledgerId, entryId }: EntryAddress, entry: StoredEntry, highest: number | undefined): Stored {
    const group = this.#joined();
    const topic = this.#kept.topics.get(name);
    // Only before `open` and after `close`, and then the commit fails.
    if (topic === undefined) return group.receipt;
    group.append(topic, this.#ledger(topic, ledgerId), entryId, entry);
    if (highest !== undefined) group.sequence(topic, entry.producerName, highest);
    return group.receipt;
  }

  acknowledge(record: AcknowledgementRecord): Stored {
    const cursor = this.#kept.topics.get(record.topic)?.cursors.get(record.subscription);
    if (cursor === undefined) return undefined;
    const acked = cursor.acknowledge(record);
    if (acked.done !== undefined) this.#unwritten.parts.add(acked.done);
    if (!acked.isNew && !this.#unwritten.has(acked) && this.#writing?.has(acked) !== true) return undefined;
    this.#unwritten.add(acked);
    return this.#joined().receipt;
  }

  changed(change: BrokerChange): void {
    applyChange(change, this.#kept, this.#unwritten);
    this.#joined();
  }

  written(): Stored {
    const isIdle = this.#unwritten.isEmpty && this.#committing === undefined;
    return isIdle ? undefined : this.#joined().receipt;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** The newest, or one that the broker has just begun. */
  #ledger(topic: KeptTopic, id: number): LedgerRow {
    const newest = topic.ledgers.at(-1);
    if (newest?.id === id) return newest;
    this.#kept.lastLedgerNumber += 1;
    const begun = { number: this.#kept.lastLedgerNumber, topic: topic.id, id };
    topic.ledgers.push(begun);
    this.#unwritten.changes.push((sql) => {
      if (!topic.isDropped) sql.putLedger(begun);
    });
    return begun;
  }

  /** The group whose commit comes next. */
  #joined(): CommitGroup {
    const last = this.#groups.at(-1);
    if (last?.isFull === false) return last;
    const group = new CommitGroup();
    this.#groups.push(group);
    this.#committing ??= this.#commitAll();
    return group;
  }

  async #commitAll(): Promise<void> {
    while (this.#groups.length > 0) await this.#commit();
    this.#committing = undefined;
  }

  async #commit(): Promise<void> {
    let group: CommitGroup | undefined;
    try {
      await this.#file.write(() => {
        group ??= this.#groups.shift() as CommitGroup;
        this.#write(group);
      });
      this.#writing = undefined;
      group?.stored();
    } catch (error) {
      this.#takeBack();
      // Where the file cannot be used it was not asked for.
      group ??= this.#groups.shift();
      // What was published after an entry that is not there must not be there either: it would hide that one from deduplication.
      const later = this.#groups.splice(0);
      for (const failed of [group, ...later]) failed?.failed(failedWrite(error));
    }
  }

  #write(group: CommitGroup): void {
    if (this.#writing === undefined) {
      this.#writing = this.#unwritten;
      this.#unwritten = new Unwritten();
    }
    const sql = this.#sql as BrokerStatements;
    this.#writing.write(sql);
    group.write(sql);
  }

  /** Nothing of it is in the file, and of entries nothing will be. */
  #takeBack(): void {
    if (this.#writing === undefined) return;
    this.#writing.addLater(this.#unwritten);
    this.#unwritten = this.#writing;
    this.#writing = undefined;
  }

  async #close(): Promise<void> {
    await this.#committing;
    // What a commit that failed left behind.
    await this.written()?.catch(() => undefined);
    await this.metadata.close();
    await this.#file.close();
  }
}

/** Its parent must be there: one that is not is more often a disk that is missing than a place for a new broker. */
async function makeFolder(dir: string, name: string): Promise<void> {
  try {
    await mkdir(dir, { mode: 0o700 });
    await forceFolder(dirname(dir));
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== 'EEXIST') throw sqliteError(name, 'opening', error);
  }
}

/** To the disk: that there is something new in it. What SQLite makes it forces itself. */
async function forceFolder(path: string): Promise<void> {
  try {
    const folder = await open(path);
    await folder.sync();
    await folder.close();
  } catch {
    // Where folders cannot be opened, as on Windows, the file system does it by itself.
  }
}

/** What was to be stored may be tried again, but not once the store is closed. */
function failedWrite(error: unknown): TransportError {
  const cause = error instanceof PulseworkError ? error : sqliteError('broker', 'writing', error);
  return new TransportError(cause.code, cause.message, { retriable: !isClosed(cause), cause });
}

function taken(name: string): PulseworkError {
  const rule = `another broker of this process has it; give both transports one \`new EmbeddedBroker({ clock, store })\``;
  return new PulseworkError('STORE_LOCKED', `store "${name}": ${rule}`);
}
