// A plugin that only observes: it counts how runs ended and keeps why messages became dead letters. What an observer
// throws is logged and changes nothing for the message.
import type { OutcomeKind, Plugin, SettlementReport } from 'pulsework';

export class OutcomeCounter implements Plugin {
  readonly name = 'outcome-counter';
  readonly counts = new Map<OutcomeKind, number>();
  readonly deadLetters: string[] = [];
  readonly #onEnded: () => void;

  /** @param onEnded called for each message that needs nothing more. */
  constructor(onEnded: () => void) {
    this.#onEnded = onEnded;
  }

  onSettled(report: SettlementReport): void {
    this.counts.set(report.outcome, (this.counts.get(report.outcome) ?? 0) + 1);
    if (report.settlement === 'acknowledge' || report.settlement === 'dead-letter') this.#onEnded();
  }

  onDeadLettered({ handler, cause, failure, attempt }: SettlementReport): void {
    this.deadLetters.push(`${handler}, attempt ${attempt}: ${cause ?? ''}, ${failure?.reason ?? ''}`);
  }
}
