// An AttemptStore in PostgreSQL, which several processes share: each tells by its open connection that it lives, and whoever finds
// what ran in one that is gone judges it. Steps that come while others are under way go together into the next statements.
import type { AttemptEnd, AttemptStart } from '../../core/attempt-records.js';
import { SharedOpening } from '../../core/shared-opening.js';
import { attemptOfRow } from '../../ports/attempt-row.js';
import type { AttemptRecord, AttemptStore, AttemptStoreSummary } from '../../ports/attempt-store.js';
import type { Clock } from '../../ports/clock.js';
import { AttemptSession } from './attempt-session.js';
import type { AttemptPut } from './attempt-statements.js';
import { AttemptStatements } from './attempt-statements.js';
import { keyColumn } from './key-column.js';
import type { PostgresClient, PostgresRow } from './postgres-client.js';
import type { PostgresDatabase } from './postgres-database.js';

/** Of one statement. */
const MAX_GROUP = 500;
/** What is too much is looked for after so many hundredths of the limit were written. */
const LOOKS_PER_LIMIT = 100;

/** One call, until it is done. */
interface Step {
  readonly key: string;
  /** undefined: what is known is asked for; null: the record goes. */
  readonly put: AttemptPut | null | undefined;
  readonly resolve: (found: AttemptRecord | undefined) => void;
  readonly reject: (error: unknown) => void;
}

export interface PostgresAttemptStoreOptions {
  readonly database: PostgresDatabase;
  readonly schema: string;
  readonly maxRecords: number;
  readonly clock: Clock;
}

export class PostgresAttemptStore implements AttemptStore {
  readonly name: string;
  readonly #options: PostgresAttemptStoreOptions;
  readonly #statements: AttemptStatements;
  #session: AttemptSession | undefined;
  #summary: AttemptStoreSummary = { records: 0, suspects: 0 };
  /** By each runtime that uses it. */
  readonly #opening: SharedOpening;
  #queued: Step[] = [];
  #working: Promise<void> | undefined;
  #putSinceLook = 0;
  #forgotten = 0;

  constructor(options: PostgresAttemptStoreOptions) {
    this.name = options.database.name;
    this.#opening = new SharedOpening(`attempt store "${this.name}"`);
    this.#options = options;
    this.#statements = new AttemptStatements(options.schema);
  }

  get forgotten(): number {
    return this.#forgotten;
  }

  open(): Promise<AttemptStoreSummary> {
    return this.#opening.open(
      () => this.#begin(),
      () => this.#summary,
    );
  }

  find(key: string): Promise<AttemptRecord | undefined> {
    return this.#step(key, undefined);
  }

  async begin(key: string, { attempt, alone }: AttemptStart): Promise<void> {
    const state = alone ? 'alone' : 'open';
    await this.#step(key, { key: keyColumn(key), state, attempts: attempt - 1, notBeforeMs: undefined });
  }

  async end(key: string, { attempts, notBeforeMs }: AttemptEnd): Promise<void> {
    await this.#step(key, { key: keyColumn(key), state: 'closed', attempts, notBeforeMs });
  }

  async delete(key: string): Promise<void> {
    await this.#step(key, null);
  }

  close(): Promise<void> {
    return this.#opening.close(() => this.#letGo());
  }

  async #begin(): Promise<void> {
    const { database, clock } = this.#options;
    const session = new AttemptSession(database, this.#statements, clock);
    try {
      await session.open();
      this.#summary = await session.run('opening', async (client, processNumber) => {
        await this.#statements.judgeTheGone(client, processNumber);
        return this.#statements.count(client);
      });
    } catch (error) {
      session.close();
      throw error;
    }
    this.#session = session;
    this.#forgotten = 0;
    this.#putSinceLook = Infinity;
  }

  async #letGo(): Promise<void> {
    await this.#working;
    const session = this.#session;
    this.#session = undefined;
    try {
      await session?.run('closing', (client, processNumber) => this.#statements.closeRunning(client, processNumber));
    } finally {
      session?.close();
    }
  }

  #step(key: string, put: Step['put']): Promise<AttemptRecord | undefined> {
    return new Promise((resolve, reject) => {
      this.#checkOpen();
      this.#queued.push({ key: keyColumn(key), put, resolve, reject });
      this.#working ??= this.#work();
    });
  }

  async #work(): Promise<void> {
    // What else is asked for in this turn joins the first statements.
    await Promise.resolve();
    while (this.#queued.length > 0) {
      const group = this.#nextGroup();
      await this.#perform(
        group.filter(({ put }) => put === undefined),
        'reading',
        (client, processNumber, steps) => this.#find(client, processNumber, steps),
      );
      await this.#perform(
        group.filter(({ put }) => put !== undefined && put !== null),
        'writing',
        (client, processNumber, steps) => this.#put(client, processNumber, steps),
      );
      await this.#perform(
        group.filter(({ put }) => put === null),
        'deleting',
        (client, _processNumber, steps) => this.#delete(client, steps),
      );
      await this.#forgetExcess();
    }
    this.#working = undefined;
  }

  /** In the order of the calls, up to the second step of one key: within a group nothing waits for anything. */
  #nextGroup(): readonly Step[] {
    const keys = new Set<string>();
    for (const { key } of this.#queued) {
      if (keys.has(key) || keys.size === MAX_GROUP) break;
      keys.add(key);
    }
    return this.#queued.splice(0, keys.size);
  }

  /** All of them or none. */
  async #perform(
    steps: readonly Step[],
    doing: string,
    act: (
      client: PostgresClient,
      processNumber: number,
      steps: readonly Step[],
    ) => Promise<ReadonlyMap<string, AttemptRecord>>,
  ): Promise<void> {
    if (steps.length === 0) return;
    try {
      const found = await (this.#session as AttemptSession).run(doing, (client, processNumber) =>
        act(client, processNumber, steps),
      );
      for (const { key, resolve } of steps) resolve(found.get(key));
    } catch (error) {
      for (const { reject } of steps) reject(error);
    }
  }

  async #find(
    client: PostgresClient,
    processNumber: number,
    steps: readonly Step[],
  ): Promise<ReadonlyMap<string, AttemptRecord>> {
    const keys = steps.map(({ key }) => key);
    let rows = await this.#statements.find(client, keys);
    if (rows.some((row) => runsElsewhere(row, processNumber))) {
      await this.#statements.judgeTheGone(client, processNumber);
      rows = await this.#statements.find(client, keys);
    }
    return new Map(rows.map((row) => [String(row['key']), attemptOfRow(row)]));
  }

  async #put(
    client: PostgresClient,
    processNumber: number,
    steps: readonly Step[],
  ): Promise<ReadonlyMap<string, AttemptRecord>> {
    const puts = steps.map(({ put }) => put as AttemptPut);
    await this.#statements.put(client, processNumber, puts);
    this.#putSinceLook += puts.length;
    return NOTHING;
  }

  async #delete(client: PostgresClient, steps: readonly Step[]): Promise<ReadonlyMap<string, AttemptRecord>> {
    await this.#statements.delete(
      client,
      steps.map(({ key }) => key),
    );
    return NOTHING;
  }

  /** What fails here is tried again after the next step. */
  async #forgetExcess(): Promise<void> {
    const { maxRecords } = this.#options;
    if (this.#putSinceLook < maxRecords / LOOKS_PER_LIMIT) return;
    try {
      this.#forgotten += await (this.#session as AttemptSession).run('forgetting', (client) =>
        this.#statements.forgetExcess(client, maxRecords),
      );
      this.#putSinceLook = 0;
    } catch {
      return;
    }
  }

  #checkOpen(): void {
    const problem = this.#opening.problem();
    if (problem !== undefined) throw problem;
  }
}

const NOTHING: ReadonlyMap<string, AttemptRecord> = new Map();

function runsElsewhere(row: PostgresRow, processNumber: number): boolean {
  return (row['state'] === 'open' || row['state'] === 'alone') && row['process'] !== processNumber;
}
