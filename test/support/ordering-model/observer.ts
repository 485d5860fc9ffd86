// What was seen of each message from outside the runtime: where it is stored, its runs, its dead letters, and when the broker
// held it for acknowledged; and what of that must not be. The rules are in `ordering-model.ts`.
import type { AcknowledgementRecord, BrokerStore, EntryAddress } from '../../../src/broker/broker-store.js';
import type { Entry } from '../../../src/broker/entry.js';
import type { Ending, Job } from './program.js';

/** One run of a handler that has not ended. */
export interface OpenRun {
  readonly message: Seen;
  readonly process: number;
  /** How often its partition had been unloaded when the connection was made that it came over. */
  readonly epoch: number;
}

export interface Seen extends Job {
  readonly number: number;
  topic: string;
  /** Runs that have started. */
  runs: number;
  /** Failed runs, of all processes. */
  failures: number;
  /** The same since the last release. */
  freshFailures: number;
  /** The same by process. */
  readonly failuresOf: Map<number, number>;
  successes: number;
  deadLetters: number;
  /** A run ended in a way after which it has to be given up. */
  mayBeDead: boolean;
  acknowledged: boolean;
}

/** The name of a rule, which stays the same while an interleaving is made shorter. */
export type Rule = 'order' | 'overlap' | 'loss' | 'attempt' | 'once' | 'wedge' | 'error';

export interface Violation {
  readonly rule: Rule;
  readonly text: string;
}

export interface StartedRun {
  readonly process: number;
  readonly number: number;
  readonly attempt: number;
  readonly epoch: number;
}

export interface ObserverFacts {
  /** Full name of the topic, without a partition. */
  readonly source: string;
  readonly deadLetters: string;
  readonly maxDeliveries: number;
  /** Nothing but joins, leaves by drain and failures happens. */
  readonly isCalm: boolean;
  readonly nowMs: () => number;
}

export class Observer implements BrokerStore {
  readonly messages: Seen[] = [];
  readonly violations: Violation[] = [];
  /** What happened, a line each. */
  readonly story: string[] = [];
  readonly #facts: ObserverFacts;
  /** By topic and entry: the messages in it. */
  readonly #entries = new Map<string, readonly Seen[]>();
  /** By topic and key, in the order in which they are stored. */
  readonly #keys = new Map<string, Seen[]>();
  readonly #running = new Set<OpenRun>();
  readonly #epochs = new Map<string, number>();
  /** A process left, and what it knew of failures with it. */
  #someLeft = false;

  constructor(facts: ObserverFacts) {
    this.#facts = facts;
  }

  get unacknowledged(): readonly Seen[] {
    return this.messages.filter(({ acknowledged }) => !acknowledged);
  }

  get running(): number {
    return this.#running.size;
  }

  /** A message that is about to be published. */
  announce(job: Job): number {
    const number = this.messages.length;
    this.messages.push({
      key: job.key,
      endings: job.endings,
      number,
      topic: '',
      runs: 0,
      failures: 0,
      freshFailures: 0,
      failuresOf: new Map(),
      successes: 0,
      deadLetters: 0,
      mayBeDead: false,
      acknowledged: false,
    });
    return number;
  }

  tell(line: string): void {
    this.story.push(`${((this.#facts.nowMs() - Date.UTC(2026, 0, 1)) / 1_000).toFixed(3)} s  ${line}`);
  }

  violated(rule: Rule, text: string): void {
    this.violations.push({ rule, text });
    this.tell(`VIOLATED (${rule}): ${text}`);
  }

  append({ topic, ledgerId, entryId }: EntryAddress, entry: Entry): undefined {
    const stored = entry.messages.map(({ payload }) => this.messages[numberIn(payload)]);
    const seen = stored.filter((message) => message !== undefined);
    if (topic.startsWith(this.#facts.deadLetters)) for (const message of seen) this.#deadLetter(message);
    else if (topic.startsWith(this.#facts.source)) {
      this.#entries.set(`${topic} ${ledgerId}:${entryId}`, seen);
      for (const message of seen) this.#stored(message, topic);
    }
  }

  acknowledge({ topic, ledgerId, entryId, batchIndex }: AcknowledgementRecord): undefined {
    const entry = this.#entries.get(`${topic} ${ledgerId}:${entryId}`) ?? [];
    const acknowledged = batchIndex < 0 ? entry : entry.slice(batchIndex, batchIndex + 1);
    for (const message of acknowledged) if (!message.acknowledged) this.#acknowledged(message);
  }

  /** A handler gets a message. @returns what is to be told at its end */
  started({ process, number, attempt, epoch }: StartedRun): OpenRun {
    const message = this.messages[number]!;
    this.tell(`process ${process} runs m${number} of ${message.key ?? 'no key'}, attempt ${attempt}`);
    const run = { message, process, epoch };
    message.runs += 1;
    if (message.key !== undefined) this.#checkOrder(run);
    this.#checkAttempt(run, attempt);
    this.#running.add(run);
    return run;
  }

  ended(run: OpenRun, ending: Ending, attempt: number): void {
    const { message, process } = run;
    this.#running.delete(run);
    this.tell(`process ${process} ends m${message.number} with ${ending.how} ${ending.delayMs} ms`);
    const { how } = ending;
    if (how === 'success') message.successes += 1;
    const isFailure = how === 'retry' || how === 'retry-after' || how === 'throw';
    if (how === 'poison' || (isFailure && attempt >= this.#facts.maxDeliveries)) message.mayBeDead = true;
    if (!isFailure && how !== 'poison') return;
    message.failures += 1;
    message.freshFailures += 1;
    message.failuresOf.set(process, (message.failuresOf.get(process) ?? 0) + 1);
  }

  /** A person decided about the message that blocks this key: if it runs again, then with fresh attempts. */
  decided(topic: string, key: string): void {
    const message = this.#keys.get(`${topic} ${key}`)?.find(({ acknowledged }) => !acknowledged);
    if (message === undefined) return;
    message.failuresOf.clear();
    message.freshFailures = 0;
  }

  /** Its runs end with it. */
  processGone(process: number): void {
    for (const run of this.#running) if (run.process === process) this.#running.delete(run);
    this.#someLeft = true;
  }

  processLeaves(): void {
    this.#someLeft = true;
  }

  /** How often a partition was unloaded so far. */
  epochOf(topic: string): number {
    return this.#epochs.get(topic) ?? 0;
  }

  unloaded(topic: string): void {
    this.#epochs.set(topic, this.epochOf(topic) + 1);
  }

  /** Once nothing happens any more. */
  checkEnd(): void {
    for (const message of this.messages) {
      const { number, acknowledged, successes, deadLetters } = message;
      if (!acknowledged) this.violated('wedge', `m${number} of ${message.key ?? 'no key'} was never acknowledged`);
      else if (successes + deadLetters === 0) this.violated('loss', `m${number} was neither handled nor a dead letter`);
      else if (this.#facts.isCalm && successes + deadLetters !== 1)
        this.violated('once', `m${number} had ${successes} successes and ${deadLetters} dead letters`);
    }
  }

  #stored(message: Seen, topic: string): void {
    message.topic = topic;
    const place = `${topic} ${message.key}`;
    const ofKey = this.#keys.get(place) ?? [];
    this.#keys.set(place, ofKey);
    ofKey.push(message);
  }

  #deadLetter(message: Seen): void {
    message.deadLetters += 1;
    this.tell(`the broker stores a dead letter of m${message.number}`);
    if (!message.mayBeDead)
      this.violated('loss', `m${message.number} became a dead letter without having failed so often`);
  }

  #acknowledged(message: Seen): void {
    message.acknowledged = true;
    this.tell(`the broker holds m${message.number} for acknowledged`);
    if (message.successes + message.deadLetters > 0) return;
    this.violated('loss', `m${message.number} was acknowledged, neither handled nor a dead letter`);
  }

  #checkOrder(run: OpenRun): void {
    const { message, process } = run;
    for (const earlier of this.#keys.get(`${message.topic} ${message.key}`) ?? []) {
      if (earlier === message) break;
      if (earlier.acknowledged) continue;
      this.violated(
        'order',
        `m${message.number} of ${message.key} ran in process ${process} before m${earlier.number} was acknowledged`,
      );
    }
    for (const other of this.#running) {
      if (other.message.key !== message.key || other.message.topic !== message.topic) continue;
      if (this.#mayOverlap(other, run)) continue;
      const where = `m${message.number} in process ${process} while m${other.message.number} ran in process ${other.process}`;
      this.violated('overlap', `two runs of ${message.key} at a time: ${where}`);
    }
  }

  /** See the exceptions in `ordering-model.ts`. */
  #mayOverlap(other: OpenRun, run: OpenRun): boolean {
    if (other.process === run.process) return false;
    return other.message.acknowledged || other.epoch < run.epoch;
  }

  #checkAttempt({ message, process }: OpenRun, attempt: number): void {
    if (!this.#facts.isCalm) return;
    const { number, failures, freshFailures, failuresOf } = message;
    const known = this.#someLeft ? (failuresOf.get(process) ?? 0) : freshFailures;
    if (attempt > known && attempt <= failures + 1) return;
    this.violated(
      'attempt',
      `m${number} ran as attempt ${attempt} after ${failures} failed runs, ${known} of them known`,
    );
  }
}

/** -1 for what is none of the model's messages. */
export function numberIn(payload: Uint8Array | null | undefined): number {
  const value: unknown = JSON.parse(Buffer.from(payload ?? []).toString() || 'null');
  return typeof value === 'number' ? value : -1;
}
