// A plugin that keeps the attempts of each message, by the message's key, and checks that none came too early.
import type { Delivery, Outcome, Plugin, SettlementReport } from 'pulsework';
import { formatMessageId } from 'pulsework';

export class Attempts implements Plugin {
  readonly name = 'attempts';
  readonly #keys = new Map<string, string>();
  readonly #reports = new Map<string, SettlementReport[]>();
  readonly #notBeforeMs = new Map<string, number>();
  #ended = 0;
  #onEnded: (() => void) | undefined;
  /** Attempts that started before their time; there must be none. */
  early = 0;

  aroundHandler(delivery: Delivery, next: () => Outcome | Promise<Outcome>): Outcome | Promise<Outcome> {
    const message = nameOf(delivery);
    this.#keys.set(message, delivery.key ?? 'no key');
    if (Date.now() < (this.#notBeforeMs.get(message) ?? 0)) this.early += 1;
    return next();
  }

  onSettled(report: SettlementReport): void {
    const message = nameOf(report);
    this.#reports.set(message, [...(this.#reports.get(message) ?? []), report]);
    if (report.settlement === 'redeliver') {
      // The wait begins at the end of the run, which is not before its start, and that is known from the duration.
      return void this.#notBeforeMs.set(message, Date.now() - report.durationMs + (report.delayMs ?? 0));
    }
    this.#ended += 1;
    this.#onEnded?.();
  }

  /** Resolves once `count` messages need nothing more. */
  async untilEnded(count: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onEnded = () => {
        if (this.#ended >= count) resolve();
      };
      this.#onEnded();
    });
  }

  /** Of the handlers named, sorted by key. */
  journeys(...handlers: readonly string[]): readonly (readonly [key: string, reports: readonly SettlementReport[]])[] {
    return [...this.#reports]
      .filter(([, [first]]) => first !== undefined && handlers.includes(first.handler))
      .map(([message, reports]) => [this.#keys.get(message) ?? 'no key', reports] as const)
      .sort(([a], [b]) => a.localeCompare(b));
  }
}

function nameOf({ handler, topic, id }: Pick<Delivery, 'handler' | 'topic' | 'id'>): string {
  return `${handler} ${topic} ${formatMessageId(id)}`;
}
