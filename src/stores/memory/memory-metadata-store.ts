// A MetadataStore in memory: for tests, and for a broker that keeps nothing beyond its process.
import { PulseworkError } from '../../core/errors.js';
import {
  checkExpectedVersion,
  checkMetadataPath,
  checkMetadataRange,
  checkMetadataWrite,
  compareMetadataNames,
  distinctIndexKeys,
  nameBelow,
  sequencePath,
} from '../../core/metadata-rules.js';
import type {
  IndexedEntry,
  IndexKey,
  IndexRange,
  MetadataEntry,
  MetadataStore,
  PathRange,
  PutOptions,
  SequenceWatch,
} from '../../ports/metadata-store.js';
import { SortedList } from './sorted-list.js';

interface StoredEntry {
  readonly value: Uint8Array;
  readonly version: number;
  readonly indexes: readonly IndexKey[];
}

interface IndexPlace {
  readonly key: string;
  readonly path: string;
}

/** Entries of this process; they are gone with the store. */
export function memoryMetadataStore(): MetadataStore {
  return new MemoryMetadataStore();
}

class MemoryMetadataStore implements MetadataStore {
  readonly name = 'memory';
  #state: 'new' | 'open' | 'closed' = 'new';
  /** The last number given, as a version or in a sequence. */
  #lastNumber = 0;
  readonly #entries = new Map<string, StoredEntry>();
  readonly #paths = new SortedList<string>(compareMetadataNames);
  readonly #indexes = new Map<string, SortedList<IndexPlace>>();
  readonly #watches = new Map<string, Set<MemoryWatch>>();

  async open(): Promise<void> {
    if (this.#state === 'closed') this.#checkOpen();
    this.#state = 'open';
  }

  async get(path: string): Promise<MetadataEntry | undefined> {
    this.#checkOpen();
    checkMetadataPath(path);
    return this.#entries.has(path) ? this.#read(path) : undefined;
  }

  async put(path: string, value: Uint8Array, options: PutOptions = {}): Promise<number> {
    this.#checkOpen();
    checkMetadataWrite(path, value, options.indexes);
    checkExpectedVersion(path, options.expectedVersion, this.#entries.get(path)?.version);
    return this.#store(path, value, options.indexes);
  }

  async delete(path: string, options: { readonly expectedVersion?: number | undefined } = {}): Promise<boolean> {
    this.#checkOpen();
    checkMetadataPath(path);
    const stored = this.#entries.get(path);
    checkExpectedVersion(path, options.expectedVersion, stored?.version);
    if (stored === undefined) return false;
    this.#leaveIndexes(path, stored);
    this.#entries.delete(path);
    this.#paths.delete(path);
    return true;
  }

  async append(
    prefix: string,
    value: Uint8Array,
    options: { readonly indexes?: readonly IndexKey[] | undefined } = {},
  ): Promise<{ readonly path: string; readonly version: number }> {
    this.#checkOpen();
    checkMetadataWrite(prefix, value, options.indexes);
    // Somebody may have put an entry under a number that was not given yet.
    while (this.#entries.has(sequencePath(prefix, this.#lastNumber + 1))) this.#lastNumber += 1;
    const path = sequencePath(prefix, this.#lastNumber + 1);
    const version = this.#store(path, value, options.indexes);
    for (const watch of this.#watches.get(prefix) ?? []) watch.somethingNewer();
    return { path, version };
  }

  async children(path: string): Promise<readonly string[]> {
    this.#checkOpen();
    if (path !== '/') checkMetadataPath(path);
    const above = path === '/' ? path : `${path}/`;
    const names = new Set<string>();
    for (const below of this.#paths.from((other) => compareMetadataNames(other, above) >= 0)) {
      if (!below.startsWith(above)) break;
      names.add(nameBelow(above, below));
    }
    return [...names].sort(compareMetadataNames);
  }

  async scan(range: PathRange): Promise<readonly MetadataEntry[]> {
    this.#checkOpen();
    checkMetadataRange({ ...range });
    const { from = '', after, to, limit = Infinity } = range;
    const found: MetadataEntry[] = [];
    const isReached = (path: string): boolean =>
      compareMetadataNames(path, from) >= 0 && (after === undefined || compareMetadataNames(path, after) > 0);
    for (const path of this.#paths.from(isReached)) {
      if (found.length >= limit || (to !== undefined && compareMetadataNames(path, to) >= 0)) break;
      found.push(this.#read(path));
    }
    return found;
  }

  async scanIndex(range: IndexRange): Promise<readonly IndexedEntry[]> {
    this.#checkOpen();
    const { index, after, ...bounds } = range;
    checkMetadataRange({ index, afterKey: after?.key, afterPath: after?.path, ...bounds });
    const { from = range.key ?? '', to, limit = Infinity } = bounds;
    const found: IndexedEntry[] = [];
    const isReached = (place: IndexPlace): boolean =>
      compareMetadataNames(place.key, from) >= 0 && (after === undefined || comparePlaces(place, after) > 0);
    for (const { key, path } of this.#indexes.get(index)?.from(isReached) ?? []) {
      if (found.length >= limit || (to !== undefined && compareMetadataNames(key, to) >= 0)) break;
      if (range.key !== undefined && key !== range.key) break;
      found.push({ key, ...this.#read(path) });
    }
    return found;
  }

  async watch(prefix: string, onNewer: () => void): Promise<SequenceWatch> {
    this.#checkOpen();
    checkMetadataPath(prefix);
    const watch = new MemoryWatch(onNewer, () => {
      const watches = this.#watches.get(prefix);
      watches?.delete(watch);
      if (watches?.size === 0) this.#watches.delete(prefix);
    });
    const watches = this.#watches.get(prefix) ?? new Set<MemoryWatch>();
    this.#watches.set(prefix, watches.add(watch));
    return watch;
  }

  async close(): Promise<void> {
    this.#state = 'closed';
    for (const watches of [...this.#watches.values()]) for (const watch of [...watches]) watch.close();
  }

  #store(path: string, value: Uint8Array, indexes: readonly IndexKey[] | undefined): number {
    const before = this.#entries.get(path);
    if (before === undefined) this.#paths.add(path);
    else this.#leaveIndexes(path, before);
    this.#lastNumber += 1;
    const stored = { value: new Uint8Array(value), version: this.#lastNumber, indexes: distinctIndexKeys(indexes) };
    this.#entries.set(path, stored);
    for (const { index, key } of stored.indexes) {
      const places = this.#indexes.get(index) ?? new SortedList<IndexPlace>(comparePlaces);
      places.add({ key, path });
      this.#indexes.set(index, places);
    }
    return stored.version;
  }

  #leaveIndexes(path: string, { indexes }: StoredEntry): void {
    for (const { index, key } of indexes) {
      const places = this.#indexes.get(index);
      places?.delete({ key, path });
      if (places?.isEmpty === true) this.#indexes.delete(index);
    }
  }

  #read(path: string): MetadataEntry {
    const { value, version } = this.#entries.get(path) as StoredEntry;
    return { path, value: new Uint8Array(value), version };
  }

  #checkOpen(): void {
    if (this.#state === 'open') return;
    throw this.#state === 'closed'
      ? new PulseworkError('ALREADY_CLOSED', 'the metadata store in memory was closed before the call')
      : new PulseworkError('ILLEGAL_STATE', 'the metadata store in memory is not open yet; open() it first');
  }
}

/** Calls its listener behind the append that it tells of, once for all that came meanwhile. */
class MemoryWatch implements SequenceWatch {
  readonly #onNewer: () => void;
  readonly #leave: () => void;
  #isClosed = false;
  #isCalling = false;

  constructor(onNewer: () => void, leave: () => void) {
    this.#onNewer = onNewer;
    this.#leave = leave;
  }

  somethingNewer(): void {
    if (this.#isCalling) return;
    this.#isCalling = true;
    queueMicrotask(() => {
      this.#isCalling = false;
      if (!this.#isClosed) this.#onNewer();
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#leave();
  }
}

function comparePlaces(a: IndexPlace, b: IndexPlace): number {
  return compareMetadataNames(a.key, b.key) || compareMetadataNames(a.path, b.path);
}
