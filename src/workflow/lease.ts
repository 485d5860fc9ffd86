// The right to work on one workflow: taken, renewed, and lost for good once it is lost. All writes go through it, under its epoch.
import { PulseworkError, toError } from '../core/errors.js';
import { seconds } from '../core/options.js';
import type { Timer } from '../ports/clock.js';
import type {
  AcquiredWorkflow,
  InboxEvent,
  KnownWorkflow,
  WorkflowKey,
  WorkflowRecord,
  WorkflowStore,
  WorkflowWrite,
  WriteAnswer,
} from '../ports/workflow-store.js';
import type { ActivationParts } from './activation-parts.js';
import { WorkflowError, keyOf } from './workflow-errors.js';

/** Between two tries of a write whose result is unknown. */
const RETRY_MS = seconds(1);

export class Lease {
  readonly #key: WorkflowKey;
  readonly #parts: ActivationParts;
  readonly #onNews: () => void;
  #acquired: AcquiredWorkflow | undefined;
  #writeVersion = 0;
  #untilMs = -Infinity;
  #inboxSeq = 0;
  #beat: Timer | undefined;
  #lost = false;
  /** Ends waits between tries. */
  #onLost: (() => void) | undefined;

  /** @param onNews something came into the inbox, or the lease was lost */
  constructor(key: WorkflowKey, parts: ActivationParts, onNews: () => void) {
    this.#key = key;
    this.#parts = parts;
    this.#onNews = onNews;
  }

  /** As it was acquired. */
  get record(): WorkflowRecord {
    if (this.#acquired === undefined) throw new Error('the lease was not acquired');
    return this.#acquired.record;
  }

  /** @param known where it is still so, the journal is not needed */
  async acquire(known?: KnownWorkflow): Promise<AcquiredWorkflow | undefined> {
    const { clock, leaseMs, owner } = this.#parts;
    const nowMs = clock.now();
    const acquired = await this.#parts.store('acquiring a workflow', (store) =>
      store.acquire(this.#key, { owner, nowMs, leaseMs, known }),
    );
    if (acquired === undefined) return undefined;
    this.#acquired = acquired;
    this.#writeVersion = acquired.writeVersion;
    this.#inboxSeq = acquired.inbox.at(-1)?.seq ?? 0;
    this.#untilMs = nowMs + leaseMs;
    this.#schedule();
    return acquired;
  }

  /** @throws WorkflowError WORKFLOW_LEASE_LOST */
  check(): void {
    if (!this.#lost && this.#parts.clock.now() < this.#untilMs) return;
    this.lose();
    throw this.#error();
  }

  /** Repeats what may have happened or not until it is known. @throws WorkflowError WORKFLOW_LEASE_LOST */
  async write(write: Omit<WorkflowWrite, 'epoch' | 'expectedVersion' | 'nowMs'>): Promise<WriteAnswer> {
    const epoch = this.#acquired?.epoch ?? 0;
    const whole: WorkflowWrite = {
      epoch,
      expectedVersion: this.#writeVersion,
      nowMs: this.#parts.clock.now(),
      ...write,
    };
    const answer = await this.#repeated('writing a workflow', (store) => store.write(this.#key, whole));
    this.#writeVersion = answer.writeVersion;
    return answer;
  }

  /** Events behind `afterSeq`. Asked for until there is an answer: for want of it nothing that has ended here is given up. */
  inbox(afterSeq: number): Promise<readonly InboxEvent[]> {
    return this.#repeated('reading the inbox', (store) => store.inbox(this.#key, afterSeq));
  }

  lose(): void {
    if (this.#lost) return;
    this.#lost = true;
    this.end();
    this.#onLost?.();
    this.#onNews();
  }

  /** Nothing is renewed any more. */
  end(): void {
    this.#beat?.cancel();
    this.#beat = undefined;
  }

  #schedule(): void {
    this.#beat = this.#parts.clock.setTimer(this.#parts.heartbeatMs, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    const { clock, leaseMs } = this.#parts;
    const nowMs = clock.now();
    // Also when a call hangs: what runs has to be told in time.
    const tooLate = clock.setTimer(Math.max(0, this.#untilMs - nowMs), () => this.lose());
    try {
      const renewed = await this.#parts.store('renewing a lease', (store) =>
        store.renew(this.#key, this.#acquired?.epoch ?? 0, { nowMs, leaseMs }),
      );
      if (this.#beat === undefined) return;
      if (renewed === undefined) {
        this.lose();
        return;
      }
      this.#untilMs = nowMs + leaseMs;
      if (renewed.inboxSeq > this.#inboxSeq) this.#onNews();
      this.#inboxSeq = Math.max(this.#inboxSeq, renewed.inboxSeq);
    } catch (error) {
      this.#parts.logger.warn('workflow lease was not renewed', { ...this.#fields, error: toError(error) });
    } finally {
      tooLate.cancel();
    }
    if (this.#beat === undefined) return;
    if (clock.now() >= this.#untilMs) this.lose();
    else this.#schedule();
  }

  async #repeated<T>(what: string, call: (store: WorkflowStore) => Promise<T>): Promise<T> {
    for (;;) {
      this.check();
      try {
        return await this.#parts.store(what, call);
      } catch (error) {
        if (error instanceof PulseworkError && error.code === 'WORKFLOW_LEASE_LOST') this.lose();
        this.#parts.logger.warn(`${what} failed`, { ...this.#fields, error: toError(error) });
      }
      await this.#pause();
    }
  }

  #pause(): Promise<void> {
    if (this.#lost) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onLost = resolve;
      this.#parts.clock.setTimer(RETRY_MS, resolve);
    });
  }

  get #fields(): { readonly workflow: string; readonly id: string } {
    return { workflow: this.#key.name, id: this.#key.id };
  }

  #error(): WorkflowError {
    return new WorkflowError('WORKFLOW_LEASE_LOST', `the lease of workflow ${keyOf(this.#key)} is lost`);
  }
}
