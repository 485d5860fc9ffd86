// Times a round twice: by the clock on the wall, and by the processor time this process took. The second hardly changes
// when other programs want the same cores; it counts the collector's and the compiler's threads too.
import type { Measurement } from './variant.js';

export class Stopwatch {
  #wallNs = process.hrtime.bigint();
  #cpu = process.cpuUsage();

  restart(): void {
    this.#wallNs = process.hrtime.bigint();
    this.#cpu = process.cpuUsage();
  }

  /** What one of `messages` took since the start. */
  perMessage(messages: number): Measurement {
    const wallNs = Number(process.hrtime.bigint() - this.#wallNs);
    const { user, system } = process.cpuUsage(this.#cpu);
    return { 'ns/message': wallNs / messages, 'cpu-ns/message': ((user + system) * 1_000) / messages };
  }
}
