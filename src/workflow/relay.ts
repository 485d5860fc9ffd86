// Sends what workflows have written to be sent: at least once, always under the same message id, and of one workflow in order.
// However much there is, few rows are in hand: a workflow whose next message could not be sent is left out until the next retry.
import { toError } from '../core/errors.js';
import { seconds } from '../core/options.js';
import { preparedMessage } from '../core/recorded-outcome.js';
import type { Timer } from '../ports/clock.js';
import type { TakenOutgoing, WorkflowKey } from '../ports/workflow-store.js';
import type { PendingPublish } from '../runtime/pending-settlement.js';
import type { PublishFailure } from '../runtime/publishers.js';
import type { ActivationParts } from './activation-parts.js';
import { keyText } from './workflow-ids.js';

/** Rows that are taken at a time. */
const LIMIT = 100;
/** Workflows that are left out, or rows that wait in passing: with so many no more are taken until the next retry. */
const MOST_WAITING = 1_000;
/** Until what could not be sent is tried again. */
const RETRY_MS = seconds(5);

export interface RelayOptions {
  readonly parts: Pick<ActivationParts, 'store' | 'clock' | 'logger' | 'owner' | 'leaseMs'>;
  readonly publish: (pending: PendingPublish) => Promise<PublishFailure | undefined>;
}

/** What a repeat goes on from. */
type Try = Pick<PendingPublish, 'by' | 'sequenceId' | 'receipt'>;

/** What became of rows of one workflow. */
interface Sending {
  readonly rows: readonly TakenOutgoing[];
  /** How many of them, from the first. */
  readonly sent: number;
  /** Why the next one was not. @default all were, or the lease was over */
  readonly stop?: 'away' | PublishFailure['kind'] | undefined;
}

export class Relay {
  readonly #options: RelayOptions;
  /** Since the last retry, by message id. */
  #tries = new Map<string, Try>();
  /** From before it. What is still ours comes up again and is found here; the rest goes. */
  readonly #earlier = new Map<string, Try>();
  /** By its text: whose next message could not be sent since the last retry. */
  readonly #leftOut = new Map<string, WorkflowKey>();
  /** Topics that took nothing since the last retry. */
  readonly #away = new Set<string>();
  #waitingRows = 0;
  #isRetry = false;
  #working: Promise<void> | undefined;
  #again = false;
  #isOpen = true;
  #retry: Timer | undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
  }

  /** There may be something to send. */
  wake(): void {
    this.#again = true;
    this.#working ??= this.#work().finally(() => (this.#working = undefined));
  }

  /** Tries all that there is. Resolves when it is sent, or has failed. */
  async drain(): Promise<void> {
    this.#tryAll();
    await this.#working;
  }

  close(): void {
    this.#isOpen = false;
    this.#retry?.cancel();
  }

  #retryLater(): void {
    if (this.#isOpen) this.#retry ??= this.#options.parts.clock.setTimer(RETRY_MS, () => this.#tryAll());
  }

  #tryAll(): void {
    this.#retry?.cancel();
    this.#retry = undefined;
    this.#isRetry = true;
    this.wake();
  }

  async #work(): Promise<void> {
    try {
      while (this.#again && this.#isOpen) {
        this.#again = false;
        await this.#round();
      }
    } catch (error) {
      this.#options.parts.logger.warn('workflow messages could not be sent now', { error: toError(error) });
      this.#retryLater();
    }
  }

  async #round(): Promise<void> {
    if (this.#isRetry) this.#beginAnew();
    if (this.#leftOut.size >= MOST_WAITING || this.#waitingRows >= MOST_WAITING) return;
    const { parts } = this.#options;
    const lease = { owner: parts.owner, nowMs: parts.clock.now(), leaseMs: parts.leaseMs };
    const request = { ...lease, limit: LIMIT, exceptWorkflows: [...this.#leftOut.values()] };
    const taken = await parts.store('taking messages to send', (store) => store.takeOutgoing(request));
    const untilMs = lease.nowMs + lease.leaseMs;
    const sendings = await Promise.all([...byWorkflow(taken)].map(([text, rows]) => this.#send(text, rows, untilMs)));
    const sent = sendings.flatMap((sending) => sending.rows.slice(0, sending.sent)).map(({ messageId }) => messageId);
    if (sent.length > 0) await parts.store('forgetting sent messages', (store) => store.sent(sent));
    for (const id of sent) {
      this.#tries.delete(id);
      this.#earlier.delete(id);
    }
    this.#learn(sendings);
    if (this.#leftOut.size > 0) this.#retryLater();
    const isLate = sendings.some(({ rows, sent: count, stop }) => count < rows.length && stop === undefined);
    if (taken.length === LIMIT || isLate) this.#again = true;
    else this.#earlier.clear();
  }

  #beginAnew(): void {
    this.#isRetry = false;
    this.#leftOut.clear();
    this.#away.clear();
    this.#waitingRows = 0;
    for (const [id, tried] of this.#tries) this.#earlier.set(id, tried);
    this.#tries.clear();
  }

  /** A topic of which nothing arrived is not tried with one workflow after the other. */
  #learn(sendings: readonly Sending[]): void {
    const topics = ({ rows }: Sending, from: number, to: number): string[] =>
      rows.slice(from, to).map(({ message }) => message.topic);
    const taking = new Set(sendings.flatMap((sending) => topics(sending, 0, sending.sent)));
    for (const sending of sendings) {
      const { rows, sent, stop } = sending;
      if (stop !== 'passing' && stop !== 'away') continue;
      this.#waitingRows += rows.length - sent;
      for (const topic of topics(sending, sent, sent + 1)) if (!taking.has(topic)) this.#away.add(topic);
    }
  }

  /** Up to the first that fails, or to the end of the lease: then another process may send them. */
  async #send(workflow: string, rows: readonly TakenOutgoing[], untilMs: number): Promise<Sending> {
    for (const [sent, row] of rows.entries()) {
      if (this.#options.parts.clock.now() >= untilMs) return { rows, sent };
      const stop = this.#away.has(row.message.topic) ? 'away' : await this.#publish(row);
      if (stop === undefined) continue;
      this.#leftOut.set(workflow, row.key);
      return { rows, sent, stop };
    }
    return { rows, sent: rows.length };
  }

  async #publish(row: TakenOutgoing): Promise<PublishFailure['kind'] | undefined> {
    const tried = this.#tries.get(row.messageId) ?? this.#earlier.get(row.messageId);
    const pending = pendingOf(row, tried);
    const failure = pending.receipt === undefined ? await this.#options.publish(pending) : undefined;
    const { by, sequenceId, receipt } = pending;
    this.#tries.set(row.messageId, { by, sequenceId, receipt });
    if (failure !== undefined) this.#report(row, failure);
    return failure?.kind;
  }

  #report({ key, messageId, message }: TakenOutgoing, { kind, error }: PublishFailure): void {
    const about = { workflow: key.name, id: key.id, topic: message.topic, messageId, error };
    const { logger } = this.#options.parts;
    if (kind === 'passing') logger.warn('workflow message was not sent; it is tried again', about);
    else
      logger.error(
        'workflow message was refused; it is kept and tried again, and later ones of the workflow wait',
        about,
      );
  }
}

function pendingOf({ message }: TakenOutgoing, tried: Try | undefined): PendingPublish {
  const prepared = preparedMessage(message);
  return {
    kind: 'message',
    topic: message.topic,
    message: prepared.message,
    isRelayed: true,
    sequenceId: undefined,
    receipt: undefined,
    ...tried,
  };
}

function byWorkflow(taken: readonly TakenOutgoing[]): ReadonlyMap<string, TakenOutgoing[]> {
  const groups = new Map<string, TakenOutgoing[]>();
  for (const row of taken) {
    const text = keyText(row.key);
    const group = groups.get(text);
    if (group === undefined) groups.set(text, [row]);
    else group.push(row);
  }
  return groups;
}
