// A MetadataStore in a SQLite file: what was confirmed is on the disk, for this process and for others that open the file.
import {
  checkExpectedVersion,
  checkMetadataPath,
  checkMetadataRange,
  checkMetadataWrite,
  compareMetadataNames,
  distinctIndexKeys,
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
import { MetadataStatements } from './metadata-statements.js';
import { SequenceWatches } from './sequence-watches.js';
import type { SqliteFileOptions, SqliteFileUse } from './sqlite-file.js';
import { SqliteFile } from './sqlite-file.js';

export interface SqliteMetadataStoreSettings extends SqliteFileOptions {
  readonly pollIntervalMs: number;
}

export class SqliteMetadataStore implements MetadataStore {
  readonly name: string;
  readonly #file: SqliteFileUse;
  readonly #watches: SequenceWatches;
  #opened: MetadataStatements | undefined;

  /** Settings that were checked. @param file shared with others. @default a file of its own */
  constructor(settings: SqliteMetadataStoreSettings, file: SqliteFileUse = new SqliteFile(settings)) {
    this.name = settings.name;
    this.#file = file;
    this.#watches = new SequenceWatches({
      clock: settings.clock,
      // Whoever has the file for itself hears of every append.
      pollIntervalMs: settings.exclusive ? Infinity : settings.pollIntervalMs,
      statements: () => this.#statements,
      read: (act) => this.#file.read(act),
    });
  }

  async open(): Promise<void> {
    const connection = await this.#file.open();
    this.#opened ??= new MetadataStatements(connection);
  }

  async get(path: string): Promise<MetadataEntry | undefined> {
    this.#file.checkOpen();
    checkMetadataPath(path);
    return this.#file.read(() => this.#statements.get(path));
  }

  async put(path: string, value: Uint8Array, options: PutOptions = {}): Promise<number> {
    this.#file.checkOpen();
    const { expectedVersion } = options;
    checkMetadataWrite(path, value, options.indexes);
    const [bytes, indexes] = [new Uint8Array(value), distinctIndexKeys(options.indexes)];
    return this.#file.write(() => {
      const found = this.#statements.versionOf(path);
      checkExpectedVersion(path, expectedVersion, found);
      const version = this.#statements.nextNumber();
      this.#statements.put({ path, value: bytes, version }, indexes, found === undefined);
      return version;
    });
  }

  async delete(path: string, options: { readonly expectedVersion?: number | undefined } = {}): Promise<boolean> {
    this.#file.checkOpen();
    const { expectedVersion } = options;
    checkMetadataPath(path);
    return this.#file.write(() => {
      const found = this.#statements.versionOf(path);
      checkExpectedVersion(path, expectedVersion, found);
      if (found !== undefined) this.#statements.delete(path);
      return found !== undefined;
    });
  }

  async append(
    prefix: string,
    value: Uint8Array,
    options: { readonly indexes?: readonly IndexKey[] | undefined } = {},
  ): Promise<{ readonly path: string; readonly version: number }> {
    this.#file.checkOpen();
    checkMetadataWrite(prefix, value, options.indexes);
    const [bytes, indexes] = [new Uint8Array(value), distinctIndexKeys(options.indexes)];
    const appended = await this.#file.write(() => {
      const version = this.#freeNumber(prefix);
      const path = sequencePath(prefix, version);
      this.#statements.put({ path, value: bytes, version }, indexes, true);
      return { path, version };
    });
    this.#watches.appended(prefix);
    return appended;
  }

  async children(path: string): Promise<readonly string[]> {
    this.#file.checkOpen();
    if (path !== '/') checkMetadataPath(path);
    const names = await this.#file.read(() => this.#statements.children(path === '/' ? path : `${path}/`));
    return [...names].sort(compareMetadataNames);
  }

  async scan(range: PathRange): Promise<readonly MetadataEntry[]> {
    this.#file.checkOpen();
    checkMetadataRange({ ...range });
    return this.#file.read(() => this.#statements.scan(range));
  }

  async scanIndex(range: IndexRange): Promise<readonly IndexedEntry[]> {
    this.#file.checkOpen();
    const { after, ...bounds } = range;
    checkMetadataRange({ afterKey: after?.key, afterPath: after?.path, ...bounds });
    return this.#file.read(() => this.#statements.scanIndex(range));
  }

  async watch(prefix: string, onNewer: () => void): Promise<SequenceWatch> {
    this.#file.checkOpen();
    checkMetadataPath(prefix);
    return this.#watches.add(prefix, onNewer);
  }

  async close(): Promise<void> {
    this.#watches.close();
    await this.#file.close();
    this.#opened = undefined;
  }

  /** Somebody may have put an entry under a number that was not given yet. */
  #freeNumber(prefix: string): number {
    for (;;) {
      const number = this.#statements.nextNumber();
      if (this.#statements.versionOf(sequencePath(prefix, number)) === undefined) return number;
    }
  }

  get #statements(): MetadataStatements {
    return this.#opened as MetadataStatements;
  }
}
