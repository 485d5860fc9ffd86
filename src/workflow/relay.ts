// Sends what workflows have written to be sent: at least once, always under the same message id, and of one workflow in order.
import { toError } from '../core/errors.js';
import { seconds } from '../core/options.js';
import { preparedMessage } from '../core/recorded-outcome.js';
import type { Timer } from '../ports/clock.js';
import type { TakenOutgoing } from '../ports/workflow-store.js';
import type { PendingPublish } from '../runtime/pending-settlement.js';
import type { PublishFailure } from '../runtime/publishers.js';
import type { ActivationParts } from './activation-parts.js';

const LIMIT = 100;
/** Until what could not be sent is tried again. */
const RETRY_MS = seconds(5);

export interface RelayOptions {
  readonly parts: Pick<ActivationParts, 'store' | 'clock' | 'logger' | 'owner' | 'leaseMs'>;
  readonly publish: (pending: PendingPublish) => Promise<PublishFailure | undefined>;
}

export class Relay {
  readonly #options: RelayOptions;
  /** By message id: a repeat is published under the sequence id of the first try. */
  readonly #pending = new Map<string, PendingPublish>();
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

  /** Resolves when what is under way is sent, or has failed. */
  async drain(): Promise<void> {
    this.wake();
    await this.#working;
  }

  close(): void {
    this.#isOpen = false;
    this.#retry?.cancel();
  }

  #retryLater(): void {
    this.#retry?.cancel();
    if (this.#isOpen) this.#retry = this.#options.parts.clock.setTimer(RETRY_MS, () => this.wake());
  }

  async #work(): Promise<void> {
    const { parts } = this.#options;
    try {
      while (this.#again && this.#isOpen) {
        this.#again = false;
        const lease = { owner: parts.owner, nowMs: parts.clock.now(), leaseMs: parts.leaseMs };
        // Those that cannot be sent now must not keep all others from being taken.
        const limit = LIMIT + this.#pending.size;
        const taken = await parts.store('taking messages to send', (store) => store.takeOutgoing({ ...lease, limit }));
        const sent = (await Promise.all([...byWorkflow(taken).values()].map((rows) => this.#send(rows)))).flat();
        if (sent.length > 0) await parts.store('forgetting sent messages', (store) => store.sent(sent));
        for (const id of sent) this.#pending.delete(id);
        if (sent.length > 0 && taken.length === limit) this.#again = true;
        if (sent.length < taken.length) this.#retryLater();
      }
    } catch (error) {
      parts.logger.warn('workflow messages could not be sent now', { error: toError(error) });
      this.#retryLater();
    }
  }

  /** Up to the first that fails. */
  async #send(rows: readonly TakenOutgoing[]): Promise<readonly string[]> {
    const sent: string[] = [];
    for (const row of rows) {
      const pending = this.#pending.get(row.messageId) ?? pendingOf(row);
      this.#pending.set(row.messageId, pending);
      const failure = pending.receipt === undefined ? await this.#options.publish(pending) : undefined;
      if (failure !== undefined) {
        this.#report(row, failure);
        break;
      }
      sent.push(row.messageId);
    }
    return sent;
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

function pendingOf({ message }: TakenOutgoing): PendingPublish {
  const prepared = preparedMessage(message);
  return {
    kind: 'message',
    topic: message.topic,
    message: prepared.message,
    isRelayed: true,
    sequenceId: undefined,
    receipt: undefined,
  };
}

function byWorkflow(taken: readonly TakenOutgoing[]): ReadonlyMap<string, TakenOutgoing[]> {
  const groups = new Map<string, TakenOutgoing[]>();
  for (const row of taken) {
    const text = JSON.stringify([row.key.name, row.key.id]);
    groups.set(text, [...(groups.get(text) ?? []), row]);
  }
  return groups;
}
