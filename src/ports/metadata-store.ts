// The seam to a place for small records that outlive what uses them, such as the state of transactions: looked up by path,
// changed by compare-and-set, found again by range, by index and in the order in which they came.
//
// Paths look like `/folder/name` and are ordered by code point, as are names of indexes and keys. An entry needs no entry above it.
// Each put gives the entry a new version, and a version is never given twice in one store: not to another entry, nor to one that was deleted
// and put again. So an entry that has the version that was read has not changed since.
// Each call is atomic and may be made by many at once, in this process and in others that share the place. Writes of one store
// take effect in the order of the calls, also without being awaited; a read sees every write that resolved before it was asked for.

export interface MetadataEntry {
  readonly path: string;
  /** The reader's own: what is done to it changes nothing in the store. */
  readonly value: Uint8Array;
  readonly version: number;
}

/** An entry as it was found in an index. */
export interface IndexedEntry extends MetadataEntry {
  readonly key: string;
}

/** Under which key an entry is found in which index. It may stand in several, and more than once in one. */
export interface IndexKey {
  readonly index: string;
  readonly key: string;
}

export interface PutOptions {
  /** A version that was read, or `NO_ENTRY` (-1): there must be no such entry. @default any: what is there is replaced */
  readonly expectedVersion?: number | undefined;
  /** All indexes of the entry from now on; those of an earlier put are gone. @default none */
  readonly indexes?: readonly IndexKey[] | undefined;
}

/** The same bounds for paths and for keys: `from` itself is in it, `to` and `after` are not. */
export interface PathRange {
  /** @default from the first */
  readonly from?: string | undefined;
  /** The last path of an earlier answer, to go on behind it. */
  readonly after?: string | undefined;
  /** @default to the last */
  readonly to?: string | undefined;
  /** At most so many, the first ones. @default all */
  readonly limit?: number | undefined;
}

export interface IndexRange {
  readonly index: string;
  /** @default from the first key */
  readonly from?: string | undefined;
  /** The last entry of an earlier answer, to go on behind it. */
  readonly after?: { readonly key: string; readonly path: string } | undefined;
  /** @default to the last key */
  readonly to?: string | undefined;
  /** This key alone; `from` and `to` are for other questions. */
  readonly key?: string | undefined;
  /** At most so many, the first ones. @default all */
  readonly limit?: number | undefined;
}

export interface SequenceWatch {
  /** The listener is not called any more, not even for what came before. */
  close(): void;
}

/**
 * Every call is refused before `open` with ILLEGAL_STATE and after `close` with ALREADY_CLOSED. A call that rejects with
 * STORE_FULL, STORE_NOT_WRITABLE or STORE_LOCKED has changed nothing. After STORE_FAILED a write may have happened: read
 * before it is repeated. Names that are none, such as a path without `/`, are a ConfigurationError.
 */
export interface MetadataStore {
  /** For logs and errors, e.g. `sqlite /var/lib/billing/broker.db`. */
  readonly name: string;
  /**
   * Makes the place where there is none. More calls than one are allowed.
   * @throws PulseworkError STORE_LOCKED while another process has it for itself; STORE_FORMAT_UNKNOWN when what is there is no
   *   such store, or of a newer version; STORE_NOT_WRITABLE, STORE_FULL, STORE_FAILED; PEER_NOT_INSTALLED, PEER_NOT_LOADABLE.
   */
  open(): Promise<void>;
  /** Undefined when there is no such entry. */
  get(path: string): Promise<MetadataEntry | undefined>;
  /**
   * Resolves with the entry's new version when it would survive whatever this store is made to survive.
   * @throws PulseworkError STORE_VERSION_CONFLICT when the entry has not the expected version: nothing has changed.
   */
  put(path: string, value: Uint8Array, options?: PutOptions): Promise<number>;
  /**
   * Takes the entry out of all its indexes too. Without `expectedVersion` false when there was none.
   * @throws PulseworkError STORE_VERSION_CONFLICT as `put`, also where an entry was expected and there is none.
   */
  delete(path: string, options?: { readonly expectedVersion?: number | undefined }): Promise<boolean>;
  /**
   * A new entry `<prefix>-<number>`, of 20 digits: those of one prefix stand in the order in which they came. Numbers rise, are
   * never given twice in one store, also after a delete, and need not follow each other.
   */
  append(
    prefix: string,
    value: Uint8Array,
    options?: { readonly indexes?: readonly IndexKey[] | undefined },
  ): Promise<{ readonly path: string; readonly version: number }>;
  /** The names directly below a path, of entries and of what only leads to some, in order; `/` is the top. */
  children(path: string): Promise<readonly string[]>;
  /** Entries in the order of their paths, as they stood at one moment. */
  scan(range: PathRange): Promise<readonly MetadataEntry[]>;
  /** Entries in the order of their keys in the index, and of their paths where keys are equal. */
  scanIndex(range: IndexRange): Promise<readonly IndexedEntry[]>;
  /**
   * Calls `onNewer` when something was appended to the sequence, by whichever process. Once `watch` has resolved, each
   * append is followed by a call, after reads see it; many appends may share one, and some calls come for nothing. So it only
   * says: look again. (What another process appends and deletes at once may go without.) `onNewer` must not throw.
   */
  watch(prefix: string, onNewer: () => void): Promise<SequenceWatch>;
  /** Waits for what is being written, ends all watches and lets go. More calls than one are allowed. */
  close(): Promise<void>;
}
