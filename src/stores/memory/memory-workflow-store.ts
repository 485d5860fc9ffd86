// A WorkflowStore in memory: workflows of one process, gone when it ends. What is asked often (what is due, what is to be sent)
// is kept in order, so that many sleeping workflows cost only their room.
import { PulseworkError } from '../../core/errors.js';
import { hasEnded } from '../../core/workflow-journal.js';
import type { JournalEntry } from '../../core/workflow-journal.js';
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
import { endsLease, isStill } from '../../ports/workflow-state.js';
import type { KeptSignals, KeptWorkflow, Wake } from './kept-workflow.js';
import { changeWorkflow, compareWakes, keyText, matches, newWorkflow, recordOf, wakeOf } from './kept-workflow.js';
import { OutgoingQueue } from './outgoing-queue.js';
import { SortedList } from './sorted-list.js';

export function memoryWorkflowStore(): WorkflowStore {
  return new InMemory();
}

class InMemory implements WorkflowStore {
  readonly name = 'memory';
  readonly #workflows = new Map<string, KeptWorkflow>();
  /** Of workflows that have not begun. */
  readonly #signals = new Map<string, KeptSignals>();
  readonly #wakes = new SortedList<Wake>(compareWakes);
  readonly #outgoing = new OutgoingQueue();
  #opened = 0;
  #wasOpened = false;
  #lastSeq = 0;

  async open(): Promise<void> {
    this.#opened += 1;
    this.#wasOpened = true;
  }

  async close(): Promise<void> {
    this.#opened = Math.max(0, this.#opened - 1);
  }

  async start(key: WorkflowKey, workflow: NewWorkflow, nowMs: number): Promise<boolean> {
    this.#requireOpen();
    const text = keyText(key);
    if (this.#workflows.has(text)) return false;
    const kept = newWorkflow(key, structuredClone(workflow), nowMs);
    for (const { event, untilMs } of this.#signals.get(text)?.events ?? []) if (untilMs > nowMs) this.#put(kept, event);
    this.#signals.delete(text);
    this.#workflows.set(text, kept);
    this.#rewake(kept, nowMs);
    return true;
  }

  async append(
    key: WorkflowKey,
    event: WorkflowEvent,
    { nowMs, keepMs }: { readonly nowMs: number; readonly keepMs: number },
  ): Promise<'added' | 'known' | 'ended' | 'unknown'> {
    this.#requireOpen();
    const kept = this.#workflows.get(keyText(key));
    const arrived = { ...structuredClone(event), seq: ++this.#lastSeq, atMs: nowMs };
    if (kept === undefined) return event.kind === 'signal' ? this.#keep(key, arrived, nowMs + keepMs) : 'unknown';
    if (hasEnded(kept.state.status)) return 'ended';
    if (kept.eventIds.has(event.eventId)) return 'known';
    this.#put(kept, arrived);
    this.#rewake(kept, Math.max(nowMs, kept.leaseUntilMs));
    return 'added';
  }

  async acquire(key: WorkflowKey, lease: AcquireRequest): Promise<AcquiredWorkflow | undefined> {
    this.#requireOpen();
    const kept = this.#workflows.get(keyText(key));
    if (kept === undefined || hasEnded(kept.state.status) || kept.leaseUntilMs > lease.nowMs) return undefined;
    kept.epoch += 1;
    kept.owner = lease.owner;
    kept.leaseUntilMs = lease.nowMs + lease.leaseMs;
    // Whoever has it sets the next wake time; should it die, there is something to do at the end of its lease.
    this.#rewake(kept, kept.leaseUntilMs);
    const { epoch, writeVersion } = kept;
    const isKnown = isStill(lease.known, { ...kept.state, writeVersion });
    return { ...snapshotOf(kept, isKnown ? [] : kept.journal), epoch, writeVersion };
  }

  async renew(
    key: WorkflowKey,
    epoch: number,
    { nowMs, leaseMs }: Omit<LeaseRequest, 'owner'>,
  ): Promise<{ readonly inboxSeq: number } | undefined> {
    this.#requireOpen();
    const kept = this.#workflows.get(keyText(key));
    if (kept === undefined || kept.epoch !== epoch || kept.owner === undefined) return undefined;
    kept.leaseUntilMs = nowMs + leaseMs;
    this.#rewake(kept, kept.leaseUntilMs);
    return { inboxSeq: kept.inbox.at(-1)?.seq ?? 0 };
  }

  async inbox(key: WorkflowKey, afterSeq: number): Promise<readonly InboxEvent[]> {
    this.#requireOpen();
    const inbox = this.#workflows.get(keyText(key))?.inbox ?? [];
    return structuredClone(inbox.filter(({ seq }) => seq > afterSeq));
  }

  async write(key: WorkflowKey, write: WorkflowWrite): Promise<WriteAnswer> {
    this.#requireOpen();
    const kept = this.#workflows.get(keyText(key));
    if (kept === undefined || kept.epoch !== write.epoch) throw leaseLost(key);
    // Under one epoch one owner writes, one thing after the other: it can only be the same again.
    if (kept.writeVersion === write.expectedVersion + 1 && kept.lastWrite?.epoch === write.epoch)
      return kept.lastWrite.answer;
    if (kept.writeVersion !== write.expectedVersion || hasEnded(kept.state.status)) throw leaseLost(key);
    changeWorkflow(kept, structuredClone(write));
    this.#outgoing.add(key, structuredClone(write.outgoing));
    const answer = { writeVersion: ++kept.writeVersion, released: this.#released(kept, write) };
    kept.lastWrite = { epoch: write.epoch, answer };
    return answer;
  }

  async due({ names, beforeMs, limit }: DueQuestion): Promise<readonly DueWorkflow[]> {
    this.#requireOpen();
    const found: DueWorkflow[] = [];
    for (const { wakeMs, kept } of this.#wakes.from(() => true)) {
      if (found.length === limit || wakeMs > beforeMs) break;
      if (names.includes(kept.key.name)) found.push({ ...kept.key, wakeMs });
    }
    return found;
  }

  async takeOutgoing(request: OutgoingRequest): Promise<readonly TakenOutgoing[]> {
    this.#requireOpen();
    return structuredClone(this.#outgoing.take(request));
  }

  async sent(messageIds: readonly string[]): Promise<void> {
    this.#requireOpen();
    this.#outgoing.remove(messageIds);
  }

  async get(key: WorkflowKey): Promise<WorkflowRecord | undefined> {
    this.#requireOpen();
    const kept = this.#workflows.get(keyText(key));
    return kept && structuredClone(recordOf(kept));
  }

  async read(key: WorkflowKey): Promise<WorkflowSnapshot | undefined> {
    this.#requireOpen();
    const kept = this.#workflows.get(keyText(key));
    return kept && snapshotOf(kept);
  }

  async list(filter: WorkflowFilter): Promise<readonly WorkflowRecord[]> {
    this.#requireOpen();
    const found = [...this.#workflows.values()].map(recordOf).filter((record) => matches(record, filter));
    return structuredClone(found.sort(compareBeginnings).slice(0, filter.limit));
  }

  async count(names: readonly string[]): Promise<readonly WorkflowCount[]> {
    this.#requireOpen();
    const counts = new Map<string, WorkflowCount>();
    for (const { state } of this.#workflows.values()) {
      const { name, status } = state;
      if (hasEnded(status) || !names.includes(name)) continue;
      const text = `${status} ${name}`;
      counts.set(text, { name, status, count: (counts.get(text)?.count ?? 0) + 1 });
    }
    return [...counts.values()];
  }

  async purge(times: {
    readonly nowMs: number;
    readonly endedBeforeMs: number;
    readonly limit: number;
  }): Promise<number> {
    this.#requireOpen();
    let purged = 0;
    for (const [text, { state }] of this.#workflows) {
      if (purged === times.limit) break;
      if (!hasEnded(state.status) || (state.endedMs ?? Infinity) >= times.endedBeforeMs) continue;
      this.#workflows.delete(text);
      purged += 1;
    }
    for (const [text, kept] of this.#signals) {
      kept.events = kept.events.filter(({ untilMs }) => untilMs > times.nowMs);
      if (kept.events.length === 0) this.#signals.delete(text);
    }
    return purged;
  }

  #keep(key: WorkflowKey, event: InboxEvent, untilMs: number): 'added' | 'known' {
    const text = keyText(key);
    const kept = this.#signals.get(text) ?? { events: [] };
    if (kept.events.some((other) => other.event.eventId === event.eventId && other.untilMs > event.atMs))
      return 'known';
    kept.events.push({ event, untilMs });
    this.#signals.set(text, kept);
    return 'added';
  }

  #put(kept: KeptWorkflow, event: InboxEvent): void {
    kept.inbox.push(event);
    kept.eventIds.add(event.eventId);
  }

  #released(kept: KeptWorkflow, { release }: WorkflowWrite): boolean {
    const hasEventBehind = (seen: number): boolean => kept.inbox.some(({ seq }) => seq > seen);
    if (!endsLease(kept.state, release, hasEventBehind)) return false;
    this.#rewake(kept, hasEnded(kept.state.status) ? Infinity : (release?.wakeMs ?? Infinity));
    kept.owner = undefined;
    kept.leaseUntilMs = -Infinity;
    return true;
  }

  #rewake(kept: KeptWorkflow, wakeMs: number): void {
    this.#wakes.delete(wakeOf(kept));
    kept.wakeMs = wakeMs;
    if (wakeMs !== Infinity) this.#wakes.add(wakeOf(kept));
  }

  #requireOpen(): void {
    if (this.#opened > 0) return;
    throw this.#wasOpened
      ? new PulseworkError('ALREADY_CLOSED', 'the workflow store in memory was closed before the call')
      : new PulseworkError('ILLEGAL_STATE', 'the workflow store in memory is not open yet; open() it first');
  }
}

function snapshotOf(kept: KeptWorkflow, journal: readonly JournalEntry[] = kept.journal): WorkflowSnapshot {
  return structuredClone({ record: recordOf(kept), journal, inbox: kept.inbox });
}

function compareBeginnings(a: WorkflowRecord, b: WorkflowRecord): number {
  return a.createdMs - b.createdMs || compareTexts(a.name, b.name) || compareTexts(a.id, b.id);
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function leaseLost({ name, id }: WorkflowKey): PulseworkError {
  return new PulseworkError(
    'WORKFLOW_LEASE_LOST',
    `workflow ${JSON.stringify(name)} ${JSON.stringify(id)}: another process has taken it over, or it has ended; nothing was written`,
  );
}
