// The stores of one life of the broker, on what all lives share: calls go through the life, notices get lost, and the observer is told
// what is on the disk.
import type { FinalState } from '../../../src/broker/transactions/txn-paths.js';
import type { TxnHeader } from '../../../src/broker/transactions/txn-records.js';
import type {
  AcknowledgementRecord,
  BrokerChange,
  DurableBrokerStore,
  EntryAddress,
  Stored,
  StoredBroker,
  StoredEntry,
} from '../../../src/ports/broker-store.js';
import type { Clock } from '../../../src/ports/clock.js';
import type { MetadataStore } from '../../../src/ports/metadata-store.js';
import type { ProcessLife } from './process-life.js';
import type { Notices } from './program.js';
import type { StoredTopics } from './stored-topics.js';

/** Told when it is on the disk. */
export interface DiskWatcher {
  stored(address: EntryAddress, entry: StoredEntry): void;
  headerWritten(transaction: string, state: 'OPEN' | FinalState): void;
  headerDeleted(transaction: string): void;
}

export interface StoreParts {
  readonly life: ProcessLife;
  readonly watcher: DiskWatcher;
}

export interface NoticeParts {
  readonly clock: Clock;
  readonly notices: Notices;
  /** In [0, 1). */
  readonly next: () => number;
}

const HEADERS = '/txn/id/';
const LATEST_NOTICE_MS = 5_000;

/** @param kept open, and left so */
export function modelMetadata(kept: MetadataStore, { life, watcher }: StoreParts, told: NoticeParts): MetadataStore {
  const watches = new Set<{ close(): void }>();
  return {
    name: 'model',
    open: () => life.call(() => kept.open()),
    get: (path) => life.call(() => kept.get(path)),
    put: (path, value, options) =>
      life.call(async () => {
        const version = await kept.put(path, value, options);
        if (path.startsWith(HEADERS)) watcher.headerWritten(path.slice(HEADERS.length), stateIn(value));
        return version;
      }),
    delete: (path, options) =>
      life.call(async () => {
        const isDeleted = await kept.delete(path, options);
        if (isDeleted && path.startsWith(HEADERS)) watcher.headerDeleted(path.slice(HEADERS.length));
        return isDeleted;
      }),
    append: (prefix, value, options) => life.call(() => kept.append(prefix, value, options)),
    children: (path) => life.call(() => kept.children(path)),
    scan: (range) => life.call(() => kept.scan(range)),
    scanIndex: (range) => life.call(() => kept.scanIndex(range)),
    watch: (prefix, onNewer) =>
      life.call(async () => {
        let isClosed = false;
        const notify = noticeOf(told, () => {
          if (!life.isOver && !isClosed) onNewer();
        });
        const watch = await kept.watch(prefix, notify);
        const closing = {
          close: () => {
            isClosed = true;
            watch.close();
          },
        };
        watches.add(closing);
        return closing;
      }),
    close: async () => {
      for (const watch of watches) watch.close();
    },
  };
}

function noticeOf({ clock, notices, next }: NoticeParts, tell: () => void): () => void {
  switch (notices) {
    case 'all':
      return tell;
    case 'lost':
      return () => undefined;
    case 'collapsed':
      return () => {
        if (next() < 0.4) tell();
      };
    case 'late':
      return () => void clock.setTimer(Math.floor(next() * LATEST_NOTICE_MS), tell);
  }
}

function stateIn(value: Uint8Array): TxnHeader['state'] {
  return (JSON.parse(new TextDecoder().decode(value)) as TxnHeader).state;
}

/** What waits for the next commit: one write of all that came in between, as on a disk. */
export class ModelBrokerStore implements DurableBrokerStore {
  readonly name = 'model';
  readonly metadata: MetadataStore;
  readonly #kept: StoredTopics;
  readonly #parts: StoreParts;
  #waiting: (() => void)[] = [];
  /** Taken back where their commit fails; changes never are. */
  #changes = new Set<() => void>();
  #next: Promise<void> | undefined;
  #committing: Promise<void> = Promise.resolve();

  constructor(kept: StoredTopics, metadata: MetadataStore, parts: StoreParts) {
    this.#kept = kept;
    this.metadata = metadata;
    this.#parts = parts;
  }

  async open(): Promise<StoredBroker> {
    return this.#parts.life.call(async () => this.#kept.read());
  }

  append(address: EntryAddress, entry: StoredEntry): Stored {
    return this.#write(() => {
      this.#kept.append(address, entry);
      this.#parts.watcher.stored(address, entry);
    });
  }

  acknowledge(record: AcknowledgementRecord): Stored {
    return this.#write(() => this.#kept.acknowledge(record));
  }

  changed(change: BrokerChange): void {
    const write = (): void => this.#kept.change(change);
    this.#changes.add(write);
    this.#waiting.push(write);
  }

  written(): Stored {
    return this.#write(() => undefined);
  }

  async close(): Promise<void> {
    await this.written()?.catch(() => undefined);
    await this.metadata.close();
  }

  #write(write: () => void): Stored {
    this.#waiting.push(write);
    this.#next ??= this.#commitNext();
    return this.#next;
  }

  #commitNext(): Promise<void> {
    const next = this.#committing.catch(() => undefined).then(() => this.#commit());
    this.#committing = next;
    // Whoever asked for it is told; a change was asked for by nobody.
    next.catch(() => undefined);
    return next;
  }

  async #commit(): Promise<void> {
    this.#next = undefined;
    const writes = this.#waiting;
    this.#waiting = [];
    try {
      await this.#parts.life.call(async () => {
        for (const write of writes) write();
      }, false);
      for (const write of writes) this.#changes.delete(write);
    } catch (error) {
      this.#waiting = [...writes.filter((write) => this.#changes.has(write)), ...this.#waiting];
      throw error;
    }
  }
}
