// A WorkflowStore in PostgreSQL, for all processes that share the schema. Calls of one workflow take effect one after the other
// because they change its row; those that begin it, or keep signals for what has not begun, take a lock of its key instead.
// Time is the callers': leases go by their clocks, and what is accepted goes by epochs alone.
import { createHash } from 'node:crypto';
import { PulseworkError, toError } from '../../core/errors.js';
import { SharedOpening } from '../../core/shared-opening.js';
import { storedText } from '../../core/stored-text.js';
import type { WorkflowStatus } from '../../core/workflow-journal.js';
import type { WorkflowCount } from '../../ports/workflow-progress.js';
import type {
  AcquireRequest,
  AcquiredWorkflow,
  DueQuestion,
  DueWorkflow,
  InboxEvent,
  LeaseRequest,
  NewWorkflow,
  OutgoingRequest,
  TakenOutgoing,
  WorkflowEvent,
  WorkflowFilter,
  WorkflowKey,
  WorkflowRecord,
  WorkflowSnapshot,
  WorkflowStore,
  WorkflowWrite,
  WriteAnswer,
} from '../../ports/workflow-store.js';
import { isStill, newState } from '../../ports/workflow-state.js';
import type { PostgresQuerier, PostgresRow } from './postgres-client.js';
import type { PostgresDatabase } from './postgres-database.js';
import { eventOf, recordOf, snapshotOf, takenOutgoing, workflowKey } from './workflow-rows.js';
import type { Statement } from './workflow-statements.js';
import { WorkflowStatements } from './workflow-statements.js';

/** A row of such a key is there: of two that came at once the other one was first. */
const UNIQUE_VIOLATION = '23505';

export class PostgresWorkflowStore implements WorkflowStore {
  readonly name: string;
  readonly #database: PostgresDatabase;
  readonly #schema: string;
  readonly #statements: WorkflowStatements;
  /** By each runtime that uses it. */
  readonly #opening: SharedOpening;

  constructor(database: PostgresDatabase, schema: string) {
    this.name = database.name;
    this.#database = database;
    this.#schema = schema;
    this.#statements = new WorkflowStatements(schema);
    this.#opening = new SharedOpening(`workflow store "${this.name}"`);
  }

  open(): Promise<void> {
    return this.#opening.open(
      () => this.#database.ready(),
      () => undefined,
    );
  }

  /** The pool stays open: it is the user's. */
  close(): Promise<void> {
    return this.#opening.close(async () => undefined);
  }

  start(key: WorkflowKey, workflow: NewWorkflow, nowMs: number): Promise<boolean> {
    return this.#underLock('starting a workflow', workflowKey(key), async (client) => {
      const begun = await run(client, this.#statements.start(newState(key, workflow, nowMs), nowMs));
      return begun.length > 0;
    });
  }

  async append(
    key: WorkflowKey,
    event: WorkflowEvent,
    { nowMs, keepMs }: { readonly nowMs: number; readonly keepMs: number },
  ): Promise<'added' | 'known' | 'ended' | 'unknown'> {
    const text = JSON.stringify({ ...event, atMs: nowMs });
    for (;;) {
      if (await this.#isAppended(this.#statements.append(key, event.eventId, text, nowMs))) return 'added';
      const [found] = await this.#query('putting an event into an inbox', this.#statements.look(key, event.eventId));
      if (found?.['ended'] === true) return 'ended';
      if (found?.['known'] === true) return 'known';
      if (found === undefined) {
        if (event.kind !== 'signal') return 'unknown';
        const kept = await this.#keep(key, event.eventId, text, { nowMs, keepMs });
        if (kept !== undefined) return kept;
      }
      // It has begun between two looks.
    }
  }

  async acquire(key: WorkflowKey, lease: AcquireRequest): Promise<AcquiredWorkflow | undefined> {
    const doing = 'acquiring a workflow';
    const [row] = await this.#query(doing, this.#statements.acquire(key, lease));
    if (row === undefined) return undefined;
    const [epoch, writeVersion] = [Number(row['epoch']), Number(row['write_version'])];
    const record = recordOf(row);
    if (row['is_current'] === true) return { ...snapshotOf(record, row), epoch, writeVersion };
    // Whoever has the lease reads what nobody else changes: it may be a statement of its own.
    const isKnown = isStill(lease.known, { ...record, writeVersion });
    const [found = {}] = await this.#query(doing, this.#statements.contents(row['number'], !isKnown));
    return { ...snapshotOf(record, found), epoch, writeVersion };
  }

  async renew(
    key: WorkflowKey,
    epoch: number,
    { nowMs, leaseMs }: Omit<LeaseRequest, 'owner'>,
  ): Promise<{ readonly inboxSeq: number } | undefined> {
    const [row] = await this.#query('renewing a lease', this.#statements.renew(key, epoch, nowMs + leaseMs));
    return row && { inboxSeq: Number(row['inbox_seq']) };
  }

  async inbox(key: WorkflowKey, afterSeq: number): Promise<readonly InboxEvent[]> {
    return (await this.#query('reading an inbox', this.#statements.inbox(key, afterSeq))).map(eventOf);
  }

  async write(key: WorkflowKey, write: WorkflowWrite): Promise<WriteAnswer> {
    const doing = 'writing a workflow';
    const [written] = await this.#query(doing, this.#statements.write(key, write));
    if (written !== undefined) return answerOf(written);
    const [last] = await this.#query(doing, this.#statements.lastWrite(key));
    // Under one epoch one owner writes, one thing after the other: it can only be the same again.
    const isRepeat =
      last !== undefined &&
      Number(last['epoch']) === write.epoch &&
      Number(last['last_epoch']) === write.epoch &&
      Number(last['write_version']) === write.expectedVersion + 1;
    if (!isRepeat) throw leaseLost(key);
    return answerOf(last);
  }

  async due({ names, beforeMs, limit }: DueQuestion): Promise<readonly DueWorkflow[]> {
    const rows = await this.#query('looking for due workflows', this.#statements.due(names, beforeMs, limit));
    return rows.map((row) => {
      const { name, id } = JSON.parse(String(row['beginning'])) as WorkflowKey;
      return { name, id, wakeMs: Number(row['wake_ms']) };
    });
  }

  async takeOutgoing(request: OutgoingRequest): Promise<readonly TakenOutgoing[]> {
    const doing = 'taking messages to send';
    // Most often there is nothing: to see that needs no lock.
    if ((await this.#query(doing, this.#statements.hasOutgoing(request.owner, request.nowMs))).length === 0) return [];
    return this.#underLock(doing, 'messages', async (client) =>
      (await run(client, this.#statements.takeOutgoing(request))).map(takenOutgoing),
    );
  }

  async sent(messageIds: readonly string[]): Promise<void> {
    await this.#query('forgetting sent messages', this.#statements.sent(messageIds));
  }

  async get(key: WorkflowKey): Promise<WorkflowRecord | undefined> {
    const [row] = await this.#query('reading a workflow', this.#statements.get(key));
    return row && recordOf(row);
  }

  async read(key: WorkflowKey): Promise<WorkflowSnapshot | undefined> {
    const [row] = await this.#query('reading a workflow', this.#statements.read(key));
    if (row === undefined) return undefined;
    // What came in while its last write was under way may still stand there.
    return snapshotOf(recordOf(row), row['ended_ms'] === null ? row : { ...row, inbox: null });
  }

  async list(filter: WorkflowFilter): Promise<readonly WorkflowRecord[]> {
    return (await this.#query('listing workflows', this.#statements.list(filter))).map(recordOf);
  }

  async count(names: readonly string[]): Promise<readonly WorkflowCount[]> {
    const byText = new Map(names.map((name) => [storedText(name), name]));
    return (await this.#query('counting workflows', this.#statements.count(names))).map((row) => ({
      name: byText.get(String(row['name'])) ?? '',
      status: String(row['status']) as WorkflowStatus,
      count: Number(row['count']),
    }));
  }

  async purge(times: {
    readonly nowMs: number;
    readonly endedBeforeMs: number;
    readonly limit: number;
  }): Promise<number> {
    const doing = 'forgetting ended workflows';
    await this.#query(doing, this.#statements.purgeSignals(times.nowMs));
    const [row] = await this.#query(doing, this.#statements.purge(times.endedBeforeMs, times.limit));
    return Number(row?.['purged']);
  }

  async #isAppended(statement: Statement): Promise<boolean> {
    try {
      return (await this.#query('putting an event into an inbox', statement)).length > 0;
    } catch (error) {
      const { code } = toError(toError(error).cause) as Error & { readonly code?: unknown };
      if (code === UNIQUE_VIOLATION) return false;
      throw error;
    }
  }

  /** Undefined when the workflow has begun meanwhile. */
  #keep(
    key: WorkflowKey,
    eventId: string,
    event: string,
    { nowMs, keepMs }: { readonly nowMs: number; readonly keepMs: number },
  ): Promise<'added' | 'known' | undefined> {
    return this.#underLock('keeping a signal', workflowKey(key), async (client) => {
      if ((await run(client, this.#statements.get(key))).length > 0) return undefined;
      const statement = this.#statements.keepSignal(key, eventId, event, nowMs, nowMs + keepMs);
      return (await run(client, statement)).length > 0 ? 'added' : 'known';
    });
  }

  /** What is done under the lock sees all that was done under it before. */
  async #underLock<T>(doing: string, what: string, act: (client: PostgresQuerier) => Promise<T>): Promise<T> {
    this.#requireOpen();
    return this.#database.transaction(doing, act, lockedBegin(`pulsework workflow of ${this.#schema} ${what}`));
  }

  async #query(doing: string, { text, values }: Statement): Promise<readonly PostgresRow[]> {
    this.#requireOpen();
    return (await this.#database.query(doing, text, values)).rows;
  }

  #requireOpen(): void {
    const problem = this.#opening.problem();
    if (problem !== undefined) throw problem;
  }
}

/** With a lock until its end. Each statement is to see what others committed while it waited. */
function lockedBegin(what: string): string {
  const number = createHash('sha256').update(what).digest().readBigInt64BE();
  return `BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock(${number})`;
}

async function run(client: PostgresQuerier, { text, values }: Statement): Promise<readonly PostgresRow[]> {
  return (await client.query(text, values)).rows;
}

function answerOf(row: PostgresRow): WriteAnswer {
  return { writeVersion: Number(row['write_version']), released: row['was_released'] === true };
}

function leaseLost({ name, id }: WorkflowKey): PulseworkError {
  return new PulseworkError(
    'WORKFLOW_LEASE_LOST',
    `workflow ${JSON.stringify(name)} ${JSON.stringify(id)}: another process has taken it over, or it has ended; nothing was written`,
  );
}
