// One stretch of work on one workflow, under its lease: replays it, takes what has happened to it, runs its steps, and writes
// down all of that before anything depends on it. It ends when there is nothing to do but wait.
import { minutes } from '../core/options.js';
import type { JournalEntry, WorkflowWait } from '../core/workflow-journal.js';
import type { AcquiredWorkflow, WorkflowChange, WorkflowKey, WriteAnswer } from '../ports/workflow-store.js';
import { isStill } from '../ports/workflow-state.js';
import { ActivationLog } from './activation-log.js';
import { ActivationNews } from './activation-news.js';
import type { ActivationParts } from './activation-parts.js';
import { Batch } from './batch.js';
import type { Command } from './command.js';
import { endOf } from './workflow-end.js';
import { Execution } from './execution.js';
import { Inbox } from './inbox.js';
import { Lease } from './lease.js';
import { OutgoingRows } from './outgoing-rows.js';
import { dueEntry, lostStep, newEntries, waitsOf, wakeMsOf } from './new-commands.js';
import type { AttemptEnd, StepFacts } from './step-end.js';
import { entryOf } from './step-end.js';
import { StepRun } from './step-run.js';
import type { RemoteWork } from './remote-steps.js';
import { remoteAttempt } from './remote-steps.js';
import { idempotencyKeyOf } from './workflow-ids.js';
import { WorkflowError, keyOf, workflowCancelled } from './workflow-errors.js';
import { journalError } from '../core/workflow-journal.js';

/** A definition of its version may come with a deploy, or be here in another process. */
const PUT_OFF_MS = minutes(1);
/** A correction comes with a deploy, which tries all blocked ones at its start: this is for several deploys at once. */
const BLOCKED_MS = minutes(10);
/** So that a method that never waits still gets its work written down. */
const MAX_BATCH = 100;

export class Activation {
  readonly key: WorkflowKey;
  readonly #parts: ActivationParts;
  readonly #lease: Lease;
  readonly #news: ActivationNews;
  readonly #log: ActivationLog;
  readonly #rows: OutgoingRows;
  readonly #batch = new Batch();
  readonly #running = new Map<Command, StepRun>();
  readonly #ended: { readonly run: StepRun; readonly end: AttemptEnd }[] = [];
  #execution!: Execution;
  #inbox!: Inbox;
  #draining = false;
  #wasTaken = false;
  #isAwake = false;
  #wakeUp: (() => void) | undefined;

  constructor(key: WorkflowKey, parts: ActivationParts) {
    this.key = key;
    this.#parts = parts;
    this.#lease = new Lease(key, parts, () => this.wake());
    this.#news = new ActivationNews(parts);
    this.#log = new ActivationLog(key, parts.logger);
    this.#rows = new OutgoingRows(parts.outgoing, (properties) => this.#news.carried(properties));
  }

  /**
   * @returns when it is to be looked at again, undefined when only an event can do that, or another process has it.
   * @throws what the store threw, WORKFLOW_LEASE_LOST included: then another activation finds what is left.
   */
  async run(): Promise<number | undefined> {
    const kept = this.#parts.kept.take(this.key);
    const acquired = await this.#lease.acquire(kept?.known);
    if (acquired === undefined) return undefined;
    this.#wasTaken = true;
    this.#news.begin(acquired);
    try {
      const { writeVersion, record } = acquired;
      return await this.#work(
        acquired,
        isStill(kept?.known, { ...record, writeVersion }) ? kept?.execution : undefined,
      );
    } finally {
      this.#lease.end();
      const message = `workflow ${keyOf(this.key)}: this process works on it no longer`;
      if (this.#running.size > 0) this.#abortSteps(new WorkflowError('WORKFLOW_LEASE_LOST', message));
      this.#news.over();
    }
  }

  /** Something has happened: look. */
  wake(): void {
    this.#isAwake = true;
    this.#wakeUp?.();
  }

  /** It had the lease. */
  get wasTaken(): boolean {
    return this.#wasTaken;
  }

  /** Something has happened that it has not looked at. */
  get wasWoken(): boolean {
    return this.#isAwake;
  }

  /** Starts nothing new; ends when what runs has ended. */
  drain(): void {
    this.#draining = true;
    this.wake();
  }

  /** What runs is told to end; without a result it is in doubt. */
  interrupt(reason: Error): void {
    this.#abortSteps(reason);
  }

  /** Another one will find it when its lease is over. */
  abandon(): void {
    this.#lease.lose();
  }

  /** @param kept where nobody has written since: it need not be replayed */
  async #work(acquired: AcquiredWorkflow, kept: Execution | undefined): Promise<number | undefined> {
    const { record, journal } = acquired;
    this.#inbox = new Inbox(acquired.inbox);
    const workflow = this.#parts.workflowFor(record);
    if (this.#inbox.has('terminate')) return this.#terminate();
    if (workflow === undefined) return this.#putOff(record.version);
    this.#execution = kept ?? new Execution(workflow, record, () => this.#parts.turn());
    if (kept === undefined) {
      await this.#execution.replay(journal);
      await this.#follow([]);
    }
    return this.#goOn();
  }

  async #goOn(): Promise<number | undefined> {
    if (this.#inbox.has('terminate')) return this.#terminate();
    const lost = lostStep(this.#execution, this.#parts.clock.now());
    if (lost !== undefined && this.#execution.problem === undefined) return this.#leaveAlone(lost);
    await this.#startSteps(({ inDoubt }) => inDoubt);
    for (;;) {
      await this.#advance();
      if (this.#inbox.has('terminate')) return this.#terminate();
      if (this.#running.size === 0 && this.#execution.problem !== undefined)
        return this.#block(this.#execution.problem);
      if (this.#execution.ending !== undefined) {
        const end = await endOf(this.#execution, this.#rows, this.#parts);
        if ('problem' in end) return this.#block(end.problem);
        return this.#end(end.change, end.entries, end.outgoing);
      }
      await this.#startSteps(() => true);
      if (this.#inbox.has('terminate')) continue;
      if (this.#running.size > 0) await this.#nap();
      // A step whose work could not be sent has ended without running.
      else if (!this.#execution.isOver) {
        const released = await this.#release();
        if (released !== undefined) return released.wakeMs;
      }
      await this.#fetch();
    }
  }

  /** All that needs no waiting, one thing after the other. */
  async #advance(): Promise<void> {
    for (;;) {
      this.#lease.check();
      const ended = this.#ended.shift();
      if (ended !== undefined) await this.#attemptEnded(ended.run, ended.end);
      else if (this.#isAtEnd) return;
      else if (!(await this.#takeEvent())) {
        const due = dueEntry(this.#execution, this.#facts);
        if (due === undefined) return;
        await this.#record(due);
      }
    }
  }

  /** Nothing of what may still come in counts. */
  get #isAtEnd(): boolean {
    const { problem, ending } = this.#execution;
    return problem !== undefined || ending !== undefined || this.#inbox.has('terminate');
  }

  async #attemptEnded(run: StepRun, end: AttemptEnd): Promise<void> {
    const { command } = run;
    this.#running.delete(command);
    const entry = entryOf(command, end, this.#facts);
    this.#news.stepEnded(command, entry);
    if (entry !== undefined) await this.#record(entry);
  }

  get #facts(): StepFacts {
    return { nowMs: this.#parts.clock.now(), random: this.#parts.random };
  }

  /** @returns false when there is none that can be taken now */
  async #takeEvent(): Promise<boolean> {
    const taken = await this.#inbox.next(this.#execution, this.#facts);
    if (taken === undefined) return false;
    this.#batch.consumed.push(taken.event.seq);
    if (taken.dropped !== undefined) this.#log.dropped(taken.event, taken.dropped);
    if (taken.entry !== undefined) await this.#record(taken.entry);
    if (taken.entry?.kind === 'cancelled')
      for (const [command, run] of this.#running) if (command.kind === 'step') run.abort(workflowCancelled());
    return true;
  }

  async #record(entry: JournalEntry): Promise<void> {
    this.#add(entry);
    // From what has happened nothing follows any more where it is to be ended.
    if (!this.#inbox.has('terminate')) await this.#follow([entry]);
  }

  /** The method goes on over `entries`, and over all that follows from them without waiting, which it may do for ever. */
  async #follow(entries: readonly JournalEntry[]): Promise<void> {
    const left = [...entries];
    do {
      this.#lease.check();
      // A code that stands still has no part in what its steps still bring.
      if (this.#execution.problem !== undefined) return;
      const entry = left.shift();
      if (entry !== undefined) await this.#execution.apply(entry);
      left.push(...(await this.#asked()));
      if (this.#batch.entries.length < MAX_BATCH) continue;
      await this.#write({ status: 'running', waits: this.#waits() });
      await this.#fetch();
      if (this.#inbox.has('terminate')) return;
    } while (left.length > 0);
  }

  /** Takes what the method has asked for. @returns what is done by being written down, with it */
  async #asked(): Promise<readonly JournalEntry[]> {
    if (this.#execution.problem !== undefined) return [];
    const asked = await newEntries(this.#execution, this.#rows, this.#parts);
    this.#batch.outgoing.push(...asked.outgoing);
    for (const entry of asked.commands) {
      this.#add(entry);
      await this.#execution.apply(entry);
    }
    for (const entry of asked.settled) this.#add(entry);
    return asked.settled;
  }

  #add(entry: JournalEntry): void {
    const command = 'at' in entry ? this.#execution.commands[entry.at] : undefined;
    this.#news.note(entry, command);
    if (command?.step !== undefined) this.#log.stepEnded(command, entry);
    this.#batch.entries.push(entry);
  }

  async #startSteps(which: (command: Command) => boolean): Promise<void> {
    if (this.#draining || this.#execution.problem !== undefined) return;
    const nowMs = this.#parts.clock.now();
    const starting = this.#execution.open.filter(
      (command) =>
        command.step !== undefined &&
        !command.stuck &&
        !command.isSent &&
        command.nextMs <= nowMs &&
        !this.#running.has(command) &&
        which(command),
    );
    if (starting.length === 0) return;
    for (const command of starting) {
      const { at, attempts, step } = command;
      if (step?.remote === undefined || this.#parts.workFor(this.#execution.record, command) !== undefined)
        await this.#record({ kind: 'attempt', at, attempt: attempts + 1, atMs: nowMs });
      else await this.#sendAttempt(command, step.remote);
    }
    // Written down before it runs: otherwise nobody would know that it may have.
    await this.#write({ status: 'running', waits: this.#waits(starting) });
    for (const command of starting) if (command.inDoubt && !command.isSent) this.#start(command);
  }

  async #sendAttempt(command: Command, remote: RemoteWork): Promise<void> {
    const { nowMs } = this.#facts;
    const { entry, outgoing } = await remoteAttempt(this.#execution, command, remote, this.#rows, nowMs);
    this.#batch.outgoing.push(...outgoing);
    await this.#record(entry);
  }

  #start(command: Command): void {
    const { record } = this.#execution;
    const run = new StepRun(command, this.#parts.clock, (ended, end) => {
      this.#ended.push({ run: ended, end });
      this.wake();
    });
    this.#running.set(command, run);
    const own = command.step?.run ?? (() => undefined);
    const key = idempotencyKeyOf(this.#execution, command.at);
    run.start(this.#news.observed(command, this.#parts.workFor(record, command) ?? own), key);
  }

  async #release(): Promise<{ readonly wakeMs: number | undefined } | undefined> {
    const nowMs = this.#parts.clock.now();
    const isStuck = this.#execution.open.some(({ stuck }) => stuck);
    const wakeMs = wakeMsOf(this.#execution);
    // Time has gone on: what is due is done here, unless somebody else is to do it.
    if (!this.#draining && wakeMs !== undefined && wakeMs <= nowMs) return undefined;
    const error = this.#execution.open.find(({ stuck }) => stuck)?.stuckBy;
    const change: WorkflowChange = { status: isStuck ? 'stuck' : 'running', waits: this.#waits(), error };
    const answer = await this.#write(change, { seen: this.#inbox.seen, wakeMs });
    if (!answer.released) return undefined;
    if (!this.#draining) this.#parts.kept.keep(this.key, this.#execution, answer.writeVersion);
    return { wakeMs };
  }

  #block(problem: Error): Promise<number | undefined> {
    this.#log.blocked(problem);
    const change = { status: 'blocked', waits: [], error: journalError(problem) } as const;
    return this.#leave(change, this.#parts.clock.now() + BLOCKED_MS);
  }

  /** It cannot go on here, whatever comes in, unless it is to be ended. */
  async #leave(change: WorkflowChange, wakeMs: number): Promise<number | undefined> {
    for (;;) {
      const { released } = await this.#write(change, { seen: this.#inbox.seen, wakeMs });
      if (released) return wakeMs;
      await this.#fetch();
      if (this.#inbox.has('terminate')) return this.#terminate();
    }
  }

  #fetch(): Promise<void> {
    return this.#inbox.fetch((afterSeq) => this.#lease.inbox(afterSeq));
  }

  #putOff(version: number): Promise<number | undefined> {
    this.#log.putOff(version);
    const change = { status: 'running', waits: this.#lease.record.waits } as const;
    return this.#leave(change, this.#parts.clock.now() + PUT_OFF_MS);
  }

  /** It may be what ends its processes, and others are at work in this one. */
  #leaveAlone(command: Command): Promise<number | undefined> {
    const { name, nextMs } = command;
    // Once, however much happens to it meanwhile: it is the first of the waits then.
    const [known] = this.#lease.record.waits;
    if (known?.name !== name || known.untilMs !== nextMs) this.#log.leftAlone(command);
    const others = this.#execution.open.filter((each) => each !== command);
    return this.#leave({ status: 'running', waits: this.#waits([], [command, ...others]) }, nextMs);
  }

  #terminate(): Promise<number | undefined> {
    const status = 'terminated';
    const error = { name: 'WorkflowError', code: 'WORKFLOW_TERMINATED', message: 'the workflow was terminated' };
    const entry: JournalEntry = { kind: 'ended', atMs: this.#parts.clock.now(), status, error };
    return this.#end({ status, error }, [entry], this.#rows.forParent(this.#lease.record, { error }));
  }

  async #end(
    change: WorkflowChange,
    entries: readonly JournalEntry[],
    outgoing: Batch['outgoing'],
  ): Promise<number | undefined> {
    for (const entry of entries) this.#add(entry);
    this.#batch.outgoing.push(...outgoing);
    const isContinued = change.status === 'continued';
    const wakeMs = isContinued ? this.#parts.clock.now() : undefined;
    // What has come in meanwhile is for the next run, which begins at once.
    await this.#write(change, { seen: Number.MAX_SAFE_INTEGER, wakeMs });
    if (!isContinued) this.#parts.onEnded(this.key);
    return wakeMs;
  }

  async #write(
    change: WorkflowChange,
    release?: { readonly seen: number; readonly wakeMs?: number | undefined },
  ): Promise<WriteAnswer> {
    const sends = this.#batch.outgoing.length > 0;
    const released = release === undefined ? {} : { release };
    try {
      const answer = await this.#lease.write({ ...this.#batch.take(), change, ...released });
      this.#news.written(change, answer.released, release?.wakeMs);
      return answer;
    } finally {
      // Also where nobody knows whether it was written: it may have been.
      if (sends) this.#parts.onOutgoing();
    }
  }

  /** Until something happens, or the next wait is over. */
  async #nap(): Promise<void> {
    if (!this.#batch.isEmpty) await this.#write({ status: 'running', waits: this.#waits() });
    const wakeMs = wakeMsOf(this.#execution, (command) => !this.#running.has(command));
    const delayMs = (wakeMs ?? Infinity) - this.#parts.clock.now();
    const timer =
      delayMs === Infinity ? undefined : this.#parts.clock.setTimer(Math.max(0, delayMs), () => this.wake());
    if (!this.#isAwake) await new Promise<void>((resolve) => (this.#wakeUp = resolve));
    this.#isAwake = false;
    this.#wakeUp = undefined;
    timer?.cancel();
    this.#lease.check();
  }

  /** @param starting steps that run as soon as this is written down */
  #waits(starting: readonly Command[] = [], open = this.#execution.open): readonly WorkflowWait[] {
    return waitsOf(open, (command) => this.#running.has(command) || starting.includes(command));
  }

  #abortSteps(reason: Error): void {
    for (const run of this.#running.values()) run.abort(reason);
  }
}
