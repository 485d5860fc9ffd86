// A WorkflowStore in a SQLite file or database, for all processes of one machine that open it. A call that resolved is
// committed; with a file of its own that means forced to the disk.
import { PulseworkError } from '../../core/errors.js';
import { hasEnded } from '../../core/workflow-journal.js';
import { CONSUMED_IDS_KEPT, changedState, endsLease, isStill, newState } from '../../ports/workflow-state.js';
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
import type { WorkflowCount } from '../../ports/workflow-progress.js';
import type { SqliteFileOptions } from './sqlite-file.js';
import { SqliteFile } from './sqlite-file.js';
import type { WorkflowRow } from './workflow-statements.js';
import { WorkflowStatements, recordOf } from './workflow-statements.js';

export class SqliteWorkflowStore implements WorkflowStore {
  readonly name: string;
  readonly #file: SqliteFile;
  #opened: WorkflowStatements | undefined;
  #openings = 0;

  constructor(options: SqliteFileOptions) {
    this.name = options.name;
    this.#file = new SqliteFile(options);
  }

  async open(): Promise<void> {
    const connection = await this.#file.open();
    this.#opened ??= new WorkflowStatements(connection);
    this.#openings += 1;
  }

  async close(): Promise<void> {
    this.#openings -= 1;
    if (this.#openings === 0) await this.#file.close();
  }

  start(key: WorkflowKey, workflow: NewWorkflow, nowMs: number): Promise<boolean> {
    return this.#write((statements) => {
      if (statements.find(key) !== undefined) return false;
      const number = statements.insert(newState(key, workflow, nowMs), nowMs);
      for (const event of statements.takeSignals(key, nowMs)) statements.addEvent(number, event);
      return true;
    });
  }

  append(
    key: WorkflowKey,
    event: WorkflowEvent,
    { nowMs, keepMs }: { readonly nowMs: number; readonly keepMs: number },
  ): Promise<'added' | 'known' | 'ended' | 'unknown'> {
    const arrived = { ...event, atMs: nowMs };
    return this.#write((statements) => {
      const row = statements.find(key);
      if (row === undefined) {
        if (event.kind !== 'signal') return 'unknown';
        return statements.keepSignal(key, arrived, nowMs + keepMs) ? 'added' : 'known';
      }
      if (hasEnded(row.state.status)) return 'ended';
      if (statements.hasEvent(row.number, event.eventId)) return 'known';
      statements.addEvent(row.number, arrived);
      statements.wake(row.number, Math.max(nowMs, row.untilMs));
      return 'added';
    });
  }

  acquire(key: WorkflowKey, { owner, nowMs, leaseMs, known }: AcquireRequest): Promise<AcquiredWorkflow | undefined> {
    return this.#write((statements) => {
      const row = statements.find(key);
      if (row === undefined || hasEnded(row.state.status) || row.untilMs > nowMs) return undefined;
      const held = { ...row, epoch: row.epoch + 1, wakeMs: nowMs + leaseMs };
      statements.hold(row.number, held.epoch, owner, held.wakeMs);
      const { epoch, writeVersion } = held;
      const isKnown = isStill(known, { ...row.state, writeVersion });
      return { ...snapshotOf(statements, held, !isKnown), epoch, writeVersion };
    });
  }

  renew(
    key: WorkflowKey,
    epoch: number,
    { nowMs, leaseMs }: Omit<LeaseRequest, 'owner'>,
  ): Promise<{ readonly inboxSeq: number } | undefined> {
    return this.#write((statements) => {
      const row = statements.find(key);
      if (row === undefined || row.epoch !== epoch || row.owner === undefined) return undefined;
      statements.hold(row.number, epoch, undefined, nowMs + leaseMs);
      return { inboxSeq: statements.newestEvent(row.number) };
    });
  }

  inbox(key: WorkflowKey, afterSeq: number): Promise<readonly InboxEvent[]> {
    return this.#read((statements) => {
      const row = statements.find(key);
      return row === undefined ? [] : statements.events(row.number, afterSeq);
    });
  }

  write(key: WorkflowKey, write: WorkflowWrite): Promise<WriteAnswer> {
    return this.#write((statements) => {
      const row = statements.find(key);
      if (row === undefined || row.epoch !== write.epoch) throw leaseLost(key);
      // Under one epoch one owner writes, one thing after the other: it can only be the same again.
      if (row.writeVersion === write.expectedVersion + 1 && row.lastEpoch === write.epoch)
        return { writeVersion: row.writeVersion, released: row.wasReleased };
      if (row.writeVersion !== write.expectedVersion || hasEnded(row.state.status)) throw leaseLost(key);
      return written(statements, row, key, write);
    });
  }

  due(question: DueQuestion): Promise<readonly DueWorkflow[]> {
    return this.#read((statements) => statements.due(question));
  }

  async takeOutgoing(request: OutgoingRequest): Promise<readonly TakenOutgoing[]> {
    // Most often there is nothing: to see that needs no right to write.
    if (!(await this.#read((statements) => statements.hasOutgoing()))) return [];
    return this.#write((statements) => statements.takeOutgoing(request));
  }

  sent(messageIds: readonly string[]): Promise<void> {
    return this.#write((statements) => statements.removeOutgoing(messageIds));
  }

  get(key: WorkflowKey): Promise<WorkflowRecord | undefined> {
    return this.#read((statements) => {
      const row = statements.find(key);
      return row && recordOf(row);
    });
  }

  read(key: WorkflowKey): Promise<WorkflowSnapshot | undefined> {
    return this.#read((statements) => {
      const row = statements.find(key);
      return row && snapshotOf(statements, row);
    });
  }

  list(filter: WorkflowFilter): Promise<readonly WorkflowRecord[]> {
    return this.#read((statements) => statements.list(filter));
  }

  count(names: readonly string[]): Promise<readonly WorkflowCount[]> {
    return this.#read((statements) => statements.count(names));
  }

  purge(times: { readonly nowMs: number; readonly endedBeforeMs: number; readonly limit: number }): Promise<number> {
    return this.#write((statements) => statements.purge(times.nowMs, times.endedBeforeMs, times.limit));
  }

  async #write<T>(act: (statements: WorkflowStatements) => T): Promise<T> {
    return this.#file.write(() => act(this.#opened as WorkflowStatements));
  }

  #read<T>(act: (statements: WorkflowStatements) => T): Promise<T> {
    return this.#file.read(() => act(this.#opened as WorkflowStatements));
  }
}

function snapshotOf(statements: WorkflowStatements, row: WorkflowRow, withJournal = true): WorkflowSnapshot {
  const { number } = row;
  const journal = withJournal ? statements.journal(number) : [];
  return { record: recordOf(row), journal, inbox: statements.events(number, 0) };
}

/** An accepted write. */
function written(
  statements: WorkflowStatements,
  row: WorkflowRow,
  key: WorkflowKey,
  write: WorkflowWrite,
): WriteAnswer {
  const { number } = row;
  const { change, release, epoch } = write;
  const state = changedState(row.state, change, write.nowMs);
  const isOver = hasEnded(state.status);
  statements.consume(number, write.consumed);
  if (change.status === 'continued') {
    statements.removeEntries(number);
    statements.forgetConsumed(number, CONSUMED_IDS_KEPT);
  } else statements.addEntries(number, write.entries);
  if (isOver) statements.removeEvents(number);
  statements.addOutgoing(key, write.outgoing);
  const released = endsLease(state, release, (seen) => statements.newestEvent(number) > seen);
  const writeVersion = row.writeVersion + 1;
  const lease = released
    ? { owner: undefined, untilMs: 0, wakeMs: isOver ? undefined : release?.wakeMs }
    : { owner: row.owner, untilMs: row.untilMs, wakeMs: row.wakeMs };
  statements.update(number, { state, ...lease, epoch, writeVersion, lastEpoch: epoch, wasReleased: released });
  return { writeVersion, released };
}

function leaseLost({ name, id }: WorkflowKey): PulseworkError {
  return new PulseworkError(
    'WORKFLOW_LEASE_LOST',
    `workflow ${JSON.stringify(name)} ${JSON.stringify(id)}: another process has taken it over, or it has ended; nothing was written`,
  );
}
