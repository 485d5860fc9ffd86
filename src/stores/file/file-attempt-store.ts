// An AttemptStore in a file: each change is a line at its end. What changes while a write is under way goes into the next one,
// so the cost of a write is shared by all that run. When most lines say nothing any more the file is written anew.
import type { AttemptChange, AttemptEnd, AttemptStart } from '../../core/attempt-records.js';
import { AttemptRecords } from '../../core/attempt-records.js';
import { SharedOpening } from '../../core/shared-opening.js';
import type { PulseworkError } from '../../core/errors.js';
import { OptionChecker } from '../../core/options.js';
import type { AttemptRecord, AttemptStore, AttemptStoreSummary } from '../../ports/attempt-store.js';
import type { ProcessTable } from '../../ports/process-table.js';
import { AppendFile } from './append-file.js';
import { HEADER, attemptLine, parseAttempts } from './attempt-lines.js';
import { storeError } from './file-errors.js';
import type { FileLock } from './file-lock.js';
import { lockFile } from './file-lock.js';

export interface FileAttemptStoreOptions {
  /**
   * The file. Its folder must exist and outlive the process: a volume that the process which takes over gets too. Each
   * process and each replica needs a file of its own.
   */
  readonly path: string;
  /**
   * Beyond it the longest untouched records are forgotten, and their counts are lower bounds again. One record takes
   * about 200 bytes of memory and 100 on disk. @default 100,000
   */
  readonly maxRecords?: number | undefined;
  /**
   * Open the file although a process of another host had it, which cannot be seen from here. Right where the volume is
   * in one place at a time, such as a volume of one replica. @default false
   */
  readonly takeOverFromOtherHosts?: boolean | undefined;
}

const DEFAULT_MAX_RECORDS = 100_000;
/** Fewer lines are not worth a new file: about 1 MB. */
const MIN_LINES = 10_000;
/** Written anew when so many times more lines than records are there, so that each line is written about twice at most. */
const LINES_PER_RECORD = 4;

const NOTHING_TO_WRITE = Promise.resolve();

/** What goes to the file in one write. */
interface Group {
  text: string;
  readonly changes: AttemptChange[];
  readonly written: Promise<void>;
  readonly settle: (error?: PulseworkError) => void;
}

export class FileAttemptStore implements AttemptStore {
  readonly name: string;
  readonly #options: FileAttemptStoreOptions;
  readonly #processes: ProcessTable;
  readonly #maxRecords: number;
  /** By each runtime that uses it. */
  readonly #opening: SharedOpening;
  #records: AttemptRecords;
  #suspects = 0;
  #lock: FileLock | undefined;
  #file: AppendFile;
  #lines = 0;
  #rewriteAtLines = MIN_LINES;
  #queued: Group | undefined;
  #writing: Promise<void> | undefined;

  /** Options that were checked. */
  constructor(options: FileAttemptStoreOptions, processes: ProcessTable) {
    this.name = `file ${options.path}`;
    this.#opening = new SharedOpening(`attempt store ${JSON.stringify(options.path)}`);
    this.#options = options;
    this.#processes = processes;
    this.#maxRecords = options.maxRecords ?? DEFAULT_MAX_RECORDS;
    this.#records = new AttemptRecords(this.#maxRecords);
    this.#file = new AppendFile(options.path);
  }

  get forgotten(): number {
    return this.#records.forgotten;
  }

  open(): Promise<AttemptStoreSummary> {
    return this.#opening.open(
      () => this.#takeOver(),
      () => ({ records: this.#records.size, suspects: this.#suspects }),
    );
  }

  find(key: string): AttemptRecord | undefined {
    const closed = this.#opening.problem();
    if (closed !== undefined) throw closed;
    const stored = this.#records.get(key);
    if (stored === undefined) return undefined;
    const { attempts, notBeforeMs, deaths, state } = stored;
    return { attempts, notBeforeMs, deaths, suspect: state === 'suspect' };
  }

  begin(key: string, start: AttemptStart): Promise<void> {
    return this.#notOpen() ?? this.#write(this.#records.begin(key, start));
  }

  end(key: string, end: AttemptEnd): Promise<void> {
    return this.#notOpen() ?? this.#write(this.#records.end(key, end));
  }

  delete(key: string): Promise<void> {
    return this.#notOpen() ?? this.#write(this.#records.delete(key));
  }

  close(): Promise<void> {
    return this.#opening.close(() => this.#letGo());
  }

  /** Judges what a dead process left, and writes the verdict down as a new file: it also shows that we may write here. */
  async #takeOver(): Promise<void> {
    try {
      this.#lock = await lockFile(this.#options.path, this.#processes, this.#options.takeOverFromOtherHosts ?? false);
      this.#file = new AppendFile(this.#lock.path);
      const records = new AttemptRecords(this.#maxRecords, parseAttempts(await this.#file.read(), this.#options.path));
      this.#suspects = records.processDied();
      records.forgetExcess();
      this.#records = records;
      await this.#rewrite();
    } catch (error) {
      await this.#lock?.release();
      this.#lock = undefined;
      throw storeError(this.#options.path, 'opening', error);
    }
  }

  async #letGo(): Promise<void> {
    const closing = this.#records.closeRunning().map((change) => this.#write(change));
    const [failed] = (await Promise.allSettled(closing)).filter(({ status }) => status === 'rejected');
    await this.#writing;
    await this.#file.close();
    await this.#lock?.release();
    this.#lock = undefined;
    if (failed?.status === 'rejected') throw failed.reason;
  }

  /** Into the next write. All that share one share its promise. */
  #write(change: AttemptChange | undefined): Promise<void> {
    if (change === undefined) return NOTHING_TO_WRITE;
    const group = (this.#queued ??= newGroup());
    this.#add(group, change);
    for (const forgotten of this.#records.forgetExcess()) this.#add(group, forgotten);
    this.#writing ??= this.#writeAll();
    return group.written;
  }

  #add(group: Group, change: AttemptChange): void {
    group.text += attemptLine(change.key, change.after);
    group.changes.push(change);
  }

  async #writeAll(): Promise<void> {
    // What else is begun in this turn joins the first write.
    await Promise.resolve();
    for (let group = this.#queued; group !== undefined; group = this.#queued) {
      this.#queued = undefined;
      try {
        await this.#writeGroup(group);
        group.settle();
      } catch (error) {
        for (const change of group.changes.toReversed()) this.#records.undo(change);
        group.settle(storeError(this.#options.path, 'writing', error));
      }
    }
    this.#writing = undefined;
  }

  async #writeGroup(group: Group): Promise<void> {
    if (this.#lines >= this.#rewriteAtLines && this.#lines >= this.#records.size * LINES_PER_RECORD) {
      try {
        await this.#rewrite();
        return;
      } catch {
        // There may be room for a line where there is none for a file. Tried again much later, not with each line.
        this.#rewriteAtLines = this.#lines * 2;
      }
    }
    await this.#file.append(group.text);
    this.#lines += group.changes.length;
  }

  /** The records as they are now, which includes whatever waits to be written. */
  async #rewrite(): Promise<void> {
    let text = HEADER;
    for (const [key, stored] of this.#records.entries()) text += attemptLine(key, stored);
    const lines = this.#records.size;
    await this.#file.replace(text);
    this.#lines = lines;
    this.#rewriteAtLines = MIN_LINES;
  }

  #notOpen(): Promise<never> | undefined {
    const error = this.#opening.problem();
    return error === undefined ? undefined : Promise.reject(error);
  }
}

/** @throws ConfigurationError naming every problem. */
export function checkFileAttemptStoreOptions(options: FileAttemptStoreOptions): void {
  const check = new OptionChecker('fileAttemptStore');
  if (check.object('options', options, pathHint(options))) {
    check.required(options, { path: 'the path of a file' });
    check.unknownOptions(options, ['path', 'maxRecords', 'takeOverFromOtherHosts']);
    check.nonEmptyString('path', options.path);
    check.positiveInteger('maxRecords', options.maxRecords);
    check.boolean('takeOverFromOtherHosts', options.takeOverFromOtherHosts);
  }
  check.throwIfAny();
}

function pathHint(options: unknown): string {
  return typeof options === 'string' ? `{ path: ${JSON.stringify(options)} }` : '{ path }';
}

function newGroup(): Group {
  let settle: Group['settle'] = () => undefined;
  const written = new Promise<void>((resolve, reject) => {
    settle = (error) => (error === undefined ? resolve() : reject(error));
  });
  return { text: '', changes: [], written, settle };
}
