// An OutboxStore in PostgreSQL, for all processes that share the schema. Who leads has an advisory lock, and does everything as
// leader on the connection that has it: whoever loses the connection loses the lock and can do nothing more, and whose process
// dies has lost both at once.
import { PulseworkError } from '../../core/errors.js';
import type { OutboxRecord } from '../../core/outbox-record.js';
import type { ClaimedRow, OutboxLead, OutboxStore, OutboxSummary, RefusedRow } from '../../ports/outbox-store.js';
import type { RunStatement } from './idempotency-statements.js';
import { OutboxStatements } from './outbox-statements.js';
import type { PostgresClient, PostgresQuerier } from './postgres-client.js';
import type { PostgresDatabase } from './postgres-database.js';
import { postgresError } from './postgres-errors.js';

/**
 * What ends the session of a leader that says nothing any more: a machine that is gone, or a process that stands still. The
 * relay speaks every second. Servers before version 14 do not have it, and go by their TCP keepalive.
 */
const IDLE_TIMEOUT = `SELECT set_config(name, '15s', false) FROM pg_catalog.pg_settings WHERE name = 'idle_session_timeout'`;
/**
 * What is claimed must be on the disk before it is sent, and with it the transaction that added it: else a message could be out whose
 * transaction a crash of the server has undone. Whoever has set more keeps it.
 */
const ON_DISK = `SELECT set_config(name, 'on', false) FROM pg_catalog.pg_settings
  WHERE name = 'synchronous_commit' AND setting = 'off'`;
const LOCK = 'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS taken';

export interface PostgresOutboxSettings {
  readonly database: PostgresDatabase;
  readonly schema: string;
  readonly notifies: boolean;
}

export class PostgresOutboxStore implements OutboxStore<PostgresQuerier> {
  readonly name: string;
  readonly #database: PostgresDatabase;
  readonly #statements: OutboxStatements;
  readonly #lock: string;
  readonly #run: RunStatement;

  constructor({ database, schema, notifies }: PostgresOutboxSettings) {
    this.name = database.name;
    this.#database = database;
    this.#statements = new OutboxStatements(schema, notifies);
    this.#lock = `pulsework outbox of ${schema}`;
    this.#run = (doing, text, values) => database.query(doing, text, values);
  }

  open(): Promise<void> {
    return this.#database.ready();
  }

  append(tx: PostgresQuerier, records: readonly OutboxRecord[]): Promise<void> {
    return this.#statements.append(tx, records);
  }

  async lead(): Promise<OutboxLead | undefined> {
    const doing = 'becoming the leader of the outbox';
    const client = await this.#database.connect(doing);
    const lead = new PostgresLead(client, this.#statements, this.name);
    try {
      const { rows } = await client.query(LOCK, [this.#lock]);
      if (rows[0]?.['taken'] !== true) {
        lead.giveBack();
        return undefined;
      }
      await client.query(IDLE_TIMEOUT);
      await client.query(ON_DISK);
      await lead.listen();
      return lead;
    } catch (error) {
      await lead.end();
      throw postgresError(this.name, doing, error);
    }
  }

  refused(limit: number): Promise<readonly RefusedRow[]> {
    return this.#statements.refused(this.#run, limit);
  }

  release(id: number): Promise<boolean> {
    return this.#statements.release(this.#run, id);
  }

  skip(id: number): Promise<boolean> {
    return this.#statements.skip(this.#run, id);
  }
}

class PostgresLead implements OutboxLead {
  readonly #client: PostgresClient;
  readonly #statements: OutboxStatements;
  readonly #store: string;
  readonly #run: RunStatement;
  readonly #lost = (): void => {
    this.#state = this.#state === 'leading' ? 'lost' : this.#state;
    this.#report();
  };
  #outboxId = '';
  #report: () => void = () => undefined;
  #state: 'leading' | 'lost' | 'ended' = 'leading';

  constructor(client: PostgresClient, statements: OutboxStatements, store: string) {
    this.#client = client;
    this.#statements = statements;
    this.#store = store;
    this.#run = (doing, text, values) => this.#query(doing, text, values);
    client.on('error', this.#lost);
  }

  get outboxId(): string {
    return this.#outboxId;
  }

  /** It has the lock. */
  async listen(): Promise<void> {
    this.#client.on('notification', () => this.#report());
    await this.#client.query(`LISTEN ${this.#statements.channel}`);
    this.#outboxId = await this.#statements.outboxId(this.#run);
  }

  /** It has no lock: the connection is as it was. */
  giveBack(): void {
    this.#client.off('error', this.#lost);
    this.#client.release(this.#state === 'lost');
    this.#state = 'ended';
  }

  claimed(): Promise<readonly ClaimedRow[]> {
    return this.#statements.claimed(this.#run);
  }

  claim(options: Parameters<OutboxLead['claim']>[0]): Promise<readonly ClaimedRow[]> {
    return this.#statements.claim(this.#run, options);
  }

  delete(ids: readonly number[]): Promise<void> {
    return this.#statements.delete(this.#run, ids);
  }

  refuse(id: number, { reason }: { readonly reason: string }): Promise<void> {
    return this.#statements.refuse(this.#run, id, reason);
  }

  summary(): Promise<OutboxSummary> {
    return this.#statements.summary(this.#run);
  }

  onNews(report: () => void): void {
    this.#report = report;
  }

  async end(): Promise<void> {
    const state = this.#state;
    if (state === 'ended') return;
    this.#state = 'ended';
    this.#report = () => undefined;
    try {
      // Heard before the connection has closed, so that another process need not wait for that.
      if (state === 'leading') await this.#client.query('SELECT pg_advisory_unlock_all()');
    } catch {
      // With the connection the lock goes too.
    }
    // Closed, and with it what was set for it.
    this.#client.release(true);
  }

  async #query(doing: string, text: string, values: unknown[]): ReturnType<RunStatement> {
    if (this.#state !== 'leading') throw this.#leadLost();
    try {
      return await this.#client.query(text, values);
    } catch (error) {
      const known = postgresError(this.#store, doing, error);
      throw known.code === 'STORE_UNREACHABLE' ? this.#leadLost(known) : known;
    }
  }

  #leadLost(cause?: Error): PulseworkError {
    const rule = 'the connection that made this process the leader is gone; another one may relay it now';
    return new PulseworkError('OUTBOX_LEAD_LOST', `outbox "${this.#store}": ${rule}`, { cause });
  }
}
