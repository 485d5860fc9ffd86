// An OutboxStore in a SQLite database of the user's, for all processes of one machine that open it. Who leads has a lease in a
// table, looked at in each transaction that it makes as leader; that of a process that is dead counts no more.
import { PulseworkError } from '../../core/errors.js';
import type { OutboxRecord } from '../../core/outbox-record.js';
import { storedText } from '../../core/stored-text.js';
import type { ClaimedRow, OutboxLead, OutboxStore, OutboxSummary, RefusedRow } from '../../ports/outbox-store.js';
import type { ProcessTable } from '../../ports/process-table.js';
import type { SqliteDatabase } from './sqlite-driver.js';
import { sqliteConnection } from './sqlite-driver.js';
import type { SqliteFileOptions } from './sqlite-file.js';
import { SqliteFile } from './sqlite-file.js';
import type { SqliteLeader } from './sqlite-outbox-statements.js';
import { SqliteOutboxStatements } from './sqlite-outbox-statements.js';

/** Ten times as long as the relay needs between two calls: a process may stand still for a moment. */
const LEASE_MS = 10_000;
/** So much of it is left when it is renewed: not each call has to write. */
const RENEW_BELOW_MS = 7_000;

/** Those of this process: an id of a process alone may be that of a dead one, as ids come again. */
const leadsHere = new Set<string>();

export interface SqliteOutboxSettings extends SqliteFileOptions {
  readonly processes: ProcessTable;
}

export class SqliteOutboxStore implements OutboxStore<SqliteDatabase> {
  readonly name: string;
  readonly #settings: SqliteOutboxSettings;
  readonly #file: SqliteFile;
  readonly #appending = new WeakMap<SqliteDatabase, SqliteOutboxStatements>();
  #opened: SqliteOutboxStatements | undefined;
  #lead: SqliteLead | undefined;
  #tells = false;

  constructor(settings: SqliteOutboxSettings) {
    this.name = settings.name;
    this.#settings = settings;
    this.#file = new SqliteFile(settings);
  }

  async open(): Promise<void> {
    const connection = await this.#file.open();
    this.#opened ??= new SqliteOutboxStatements(connection);
  }

  append(tx: SqliteDatabase, records: readonly OutboxRecord[]): void {
    let statements = this.#appending.get(tx);
    if (statements === undefined) {
      statements = new SqliteOutboxStatements(sqliteConnection(tx));
      this.#appending.set(tx, statements);
    }
    statements.append(records);
    this.#tellSoon();
  }

  async lead(): Promise<OutboxLead | undefined> {
    const { host, processId } = this.#settings.processes;
    // Most often it is somebody else's: to see that needs no right to write.
    if (await this.#read((statements) => this.#leads(statements.leader()))) return undefined;
    const given = await this.#write((statements) => {
      const leader = statements.leader();
      if (this.#leads(leader)) return undefined;
      return { outboxId: leader.outboxId, token: statements.lead(host, processId, LEASE_MS) };
    });
    if (given === undefined) return undefined;
    const { outboxId, token } = given;
    leadsHere.add(token);
    const write = <T>(act: (statements: SqliteOutboxStatements) => T): Promise<T> => this.#write(act);
    const read = <T>(act: (statements: SqliteOutboxStatements) => T): Promise<T> => this.#read(act);
    this.#lead = new SqliteLead(outboxId, token, { name: this.name, write, read });
    return this.#lead;
  }

  refused(limit: number): Promise<readonly RefusedRow[]> {
    return this.#read((statements) => statements.refused(limit));
  }

  async release(id: number): Promise<boolean> {
    const released = await this.#write((statements) => statements.release(id));
    this.#lead?.tell();
    return released;
  }

  async skip(id: number): Promise<boolean> {
    const skipped = await this.#write((statements) => statements.skip(id));
    this.#lead?.tell();
    return skipped;
  }

  #leads({ token, host, processId, remainingMs }: SqliteLeader): boolean {
    if (token === undefined || remainingMs <= 0) return false;
    const { processes } = this.#settings;
    if (host !== processes.host) return true;
    return processId === processes.processId ? leadsHere.has(token) : processes.isAlive(processId);
  }

  /** Most transactions of the user end in the turn in which they began. Those that do not are found by the next look. */
  #tellSoon(): void {
    if (this.#tells) return;
    this.#tells = true;
    this.#settings.clock.nextTurn(() => {
      this.#tells = false;
      this.#lead?.tell();
    });
  }

  #write<T>(act: (statements: SqliteOutboxStatements) => T): Promise<T> {
    return this.#file.write(() => act(this.#opened as SqliteOutboxStatements));
  }

  #read<T>(act: (statements: SqliteOutboxStatements) => T): Promise<T> {
    return this.#file.read(() => act(this.#opened as SqliteOutboxStatements));
  }
}

interface LeadParts {
  readonly name: string;
  readonly write: <T>(act: (statements: SqliteOutboxStatements) => T) => Promise<T>;
  readonly read: <T>(act: (statements: SqliteOutboxStatements) => T) => Promise<T>;
}

class SqliteLead implements OutboxLead {
  readonly outboxId: string;
  readonly #token: string;
  readonly #parts: LeadParts;
  #report: () => void = () => undefined;

  constructor(outboxId: string, token: string, parts: LeadParts) {
    this.outboxId = outboxId;
    this.#token = token;
    this.#parts = parts;
  }

  tell(): void {
    this.#report();
  }

  claimed(): Promise<readonly ClaimedRow[]> {
    return this.#leading((statements) => statements.claimed());
  }

  async claim(options: Parameters<OutboxLead['claim']>[0]): Promise<readonly ClaimedRow[]> {
    const mayHaveSome = await this.#parts.read((statements) => {
      this.#check(statements);
      return statements.hasWaiting();
    });
    return mayHaveSome ? this.#leading((statements) => statements.claim(options)) : [];
  }

  delete(ids: readonly number[]): Promise<void> {
    return this.#leading((statements) => statements.delete(ids));
  }

  refuse(id: number, { reason }: { readonly reason: string }): Promise<void> {
    return this.#leading((statements) => statements.refuse(id, storedText(reason)));
  }

  async summary(): Promise<OutboxSummary> {
    const { summary, remainingMs } = await this.#parts.read((statements) => ({
      summary: statements.summary(),
      remainingMs: this.#check(statements),
    }));
    if (remainingMs < RENEW_BELOW_MS) await this.#leading(() => undefined);
    return summary;
  }

  onNews(report: () => void): void {
    this.#report = report;
  }

  async end(): Promise<void> {
    this.#report = () => undefined;
    leadsHere.delete(this.#token);
    // What cannot be written now ends with the lease.
    await this.#parts.write((statements) => statements.giveUp(this.#token)).catch(() => undefined);
  }

  #leading<T>(act: (statements: SqliteOutboxStatements) => T): Promise<T> {
    return this.#parts.write((statements) => {
      if (this.#check(statements) < RENEW_BELOW_MS) statements.renew(LEASE_MS);
      return act(statements);
    });
  }

  /** Its lease may be over while nobody else leads. @returns what is left of it, milliseconds */
  #check(statements: SqliteOutboxStatements): number {
    const { token, remainingMs } = statements.leader();
    if (token === this.#token) return remainingMs;
    throw new PulseworkError('OUTBOX_LEAD_LOST', `outbox "${this.#parts.name}": another process relays it now`);
  }
}
