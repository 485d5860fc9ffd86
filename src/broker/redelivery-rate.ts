// How many messages were asked back, and how many per second in the last full minute, as Pulsar's msgRateRedeliver says
// it. Without a timer: the minute ends when somebody next counts or looks.

/** As Pulsar's statsUpdateFrequencyInSecs. */
const PERIOD_SECONDS = 60;

export class RedeliveryRate {
  #total = 0;
  #inPeriod = 0;
  #lastPeriod = 0;
  #periodEndsMs: number;

  constructor(nowMs: number) {
    this.#periodEndsMs = nowMs + PERIOD_SECONDS * 1_000;
  }

  get total(): number {
    return this.#total;
  }

  count(messages: number, nowMs: number): void {
    this.#endPeriod(nowMs);
    this.#total += messages;
    this.#inPeriod += messages;
  }

  /** In the last full minute. */
  perSecond(nowMs: number): number {
    this.#endPeriod(nowMs);
    return this.#lastPeriod / PERIOD_SECONDS;
  }

  #endPeriod(nowMs: number): void {
    if (nowMs < this.#periodEndsMs) return;
    const periods = 1 + Math.floor((nowMs - this.#periodEndsMs) / (PERIOD_SECONDS * 1_000));
    this.#lastPeriod = periods === 1 ? this.#inPeriod : 0;
    this.#inPeriod = 0;
    this.#periodEndsMs += periods * PERIOD_SECONDS * 1_000;
  }
}
