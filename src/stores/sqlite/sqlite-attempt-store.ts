// An AttemptStore in a SQLite file, for one process at a time. Steps that come in one turn share a transaction.
import { PulseworkError } from '../../core/errors.js';
import type { AttemptEnd, AttemptStart } from '../../core/attempt-records.js';
import { SharedOpening } from '../../core/shared-opening.js';
import type { AttemptRecord, AttemptStore, AttemptStoreSummary } from '../../ports/attempt-store.js';
import type { ProcessTable } from '../../ports/process-table.js';
import type { AttemptHolder, AttemptPut } from './sqlite-attempt-statements.js';
import { SqliteAttemptStatements } from './sqlite-attempt-statements.js';
import type { SqliteFileOptions } from './sqlite-file.js';
import { SqliteFile } from './sqlite-file.js';

/** What is too much is looked for after so many hundredths of the limit were written. */
const LOOKS_PER_LIMIT = 100;

/** Openings of this process: its own id in the file alone may be that of a dead one, as ids come again. */
const heldHere = new Set<string>();
let openings = 0;

export interface SqliteAttemptSettings extends SqliteFileOptions {
  readonly maxRecords: number;
  readonly takeOverFromOtherHosts: boolean;
  readonly processes: ProcessTable;
}

/** While it is open. */
interface Opened {
  readonly file: SqliteFile;
  readonly statements: SqliteAttemptStatements;
  readonly holder: AttemptHolder;
}

export class SqliteAttemptStore implements AttemptStore {
  readonly name: string;
  readonly #settings: SqliteAttemptSettings;
  /** By each runtime that uses it. */
  readonly #opening: SharedOpening;
  #opened: Opened | undefined;
  #summary: AttemptStoreSummary = { records: 0, suspects: 0 };
  #putSinceLook = 0;
  #forgotten = 0;

  constructor(settings: SqliteAttemptSettings) {
    this.name = settings.name;
    this.#opening = new SharedOpening(`attempt store "${this.name}"`);
    this.#settings = settings;
  }

  get forgotten(): number {
    return this.#forgotten;
  }

  open(): Promise<AttemptStoreSummary> {
    return this.#opening.open(
      () => this.#takeOver(),
      () => this.#summary,
    );
  }

  /** Behind what was asked for before. */
  find(key: string): Promise<AttemptRecord | undefined> {
    return this.#step((statements) => statements.find(key));
  }

  begin(key: string, { attempt, alone }: AttemptStart): Promise<void> {
    return this.#put(key, { state: alone ? 'alone' : 'open', attempts: attempt - 1, notBeforeMs: undefined });
  }

  end(key: string, { attempts, notBeforeMs }: AttemptEnd): Promise<void> {
    return this.#put(key, { state: 'closed', attempts, notBeforeMs });
  }

  delete(key: string): Promise<void> {
    return this.#step((statements) => statements.delete(key));
  }

  close(): Promise<void> {
    return this.#opening.close(() => this.#letGo());
  }

  /** Judges what a dead process left. */
  async #takeOver(): Promise<void> {
    const { processes, maxRecords } = this.#settings;
    const file = new SqliteFile(this.#settings);
    openings += 1;
    const { host, processId } = processes;
    const holder = { host, processId, token: `${host} ${processId} ${this.#settings.clock.now()} ${openings}` };
    heldHere.add(holder.token);
    try {
      const statements = new SqliteAttemptStatements(await file.open());
      const [summary, forgotten] = await file.write(() => {
        this.#checkFree(statements.holder());
        statements.hold(holder);
        statements.processDied();
        return [statements.count(), statements.forgetExcess(maxRecords)] as const;
      });
      this.#summary = { ...summary, records: summary.records - forgotten };
      this.#forgotten = forgotten;
      this.#opened = { file, statements, holder };
    } catch (error) {
      heldHere.delete(holder.token);
      await file.close();
      throw error;
    }
  }

  async #letGo(): Promise<void> {
    if (this.#opened === undefined) return;
    const { file, statements, holder } = this.#opened;
    this.#opened = undefined;
    try {
      await file.write(() => {
        statements.closeRunning();
        statements.letGo(holder.token);
      });
    } finally {
      heldHere.delete(holder.token);
      await file.close();
    }
  }

  async #put(key: string, put: AttemptPut): Promise<void> {
    const { maxRecords } = this.#settings;
    this.#putSinceLook += 1;
    const looks = this.#putSinceLook >= maxRecords / LOOKS_PER_LIMIT;
    if (looks) this.#putSinceLook = 0;
    this.#forgotten += await this.#step((statements) => {
      statements.put(key, put);
      return looks ? statements.forgetExcess(maxRecords) : 0;
    });
  }

  async #step<T>(act: (statements: SqliteAttemptStatements) => T): Promise<T> {
    const { file, statements } = this.#checkOpen();
    return file.write(() => act(statements));
  }

  #checkOpen(): Opened {
    const problem = this.#opening.problem();
    if (problem !== undefined) throw problem;
    if (this.#opened === undefined) throw new Error('an open store has its file');
    return this.#opened;
  }

  /** @throws PulseworkError STORE_LOCKED */
  #checkFree(holder: AttemptHolder | undefined): void {
    const { processes, takeOverFromOtherHosts } = this.#settings;
    if (holder === undefined) return;
    const { host, processId, token } = holder;
    if (host !== processes.host) {
      if (takeOverFromOtherHosts) return;
      throw this.#locked(`process ${processId} on host ${host} had it open; if it is gone, set takeOverFromOtherHosts`);
    }
    if (processId === processes.processId) {
      if (heldHere.has(token)) throw this.#locked('this process has it open already; share that store');
      return;
    }
    if (processes.isAlive(processId)) throw this.#locked(`process ${processId} has it open; close it there first`);
  }

  #locked(holder: string): PulseworkError {
    return new PulseworkError('STORE_LOCKED', `attempt store "${this.name}": ${holder}`);
  }
}
