// A plugin that watches settlements: it counts them, keeps the journey of one retried order and of one that became a
// dead letter, and knows when all that was sent has come to an end.
import { compareMessageIds, formatMessageId } from 'pulsework';
import type { Plugin, SettlementReport } from 'pulsework';

/** What happened to one message, in order. */
export type Journey = readonly SettlementReport[];

export class Journal implements Plugin {
  readonly name = 'journal';
  readonly #underWay = new Map<string, SettlementReport[]>();
  /** By handler and settlement. */
  readonly #counts = new Map<string, number>();
  readonly #waiting = new Set<{ handler: string; count: number; resolve: () => void }>();
  #retried: Journey | undefined;
  #deadLettered: Journey | undefined;
  #retriedMessages = 0;

  onSettled(report: SettlementReport): void {
    const key = `${report.handler} ${formatMessageId(report.id)}`;
    const journey = [...(this.#underWay.get(key) ?? []), report];
    this.#count(report);
    if (report.settlement === 'redeliver') return void this.#underWay.set(key, journey);
    this.#underWay.delete(key);
    this.#remember(journey, report);
    for (const wait of this.#waiting) if (this.ended(wait.handler) >= wait.count) wait.resolve();
  }

  count(handler: string, settlement: SettlementReport['settlement']): number {
    return this.#counts.get(`${handler} ${settlement}`) ?? 0;
  }

  /** Messages of `handler` that need nothing more. */
  ended(handler: string): number {
    return this.count(handler, 'acknowledge') + this.count(handler, 'dead-letter');
  }

  /** Messages that were delivered more than once. */
  get retriedMessages(): number {
    return this.#retriedMessages;
  }

  /** The earliest message that was retried at least twice and then succeeded. */
  get retried(): Journey | undefined {
    return this.#retried;
  }

  /** The earliest message that was retried and still became a dead letter. */
  get deadLettered(): Journey | undefined {
    return this.#deadLettered;
  }

  /** Resolves once `count` messages of `handler` have ended. */
  async untilEnded(handler: string, count: number): Promise<void> {
    if (this.ended(handler) >= count) return;
    await new Promise<void>((resolve) => this.#waiting.add({ handler, count, resolve }));
  }

  #count({ handler, settlement }: SettlementReport): void {
    this.#counts.set(`${handler} ${settlement}`, this.count(handler, settlement) + 1);
  }

  #remember(journey: Journey, { settlement }: SettlementReport): void {
    if (journey.length > 1) this.#retriedMessages += 1;
    if (settlement === 'acknowledge' && journey.length > 2) this.#retried = earlier(this.#retried, journey);
    if (settlement === 'dead-letter' && journey.length > 1) this.#deadLettered = earlier(this.#deadLettered, journey);
  }
}

function earlier(known: Journey | undefined, added: Journey): Journey {
  const [a, b] = [known?.[0], added[0]];
  return known !== undefined && a !== undefined && b !== undefined && compareMessageIds(a.id, b.id) < 0 ? known : added;
}
