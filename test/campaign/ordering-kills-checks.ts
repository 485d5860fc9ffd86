// What must hold after a run of `ordering-kills`, decided on what all processes told: no message of a key starts before each
// earlier one is acknowledged or a dead letter, none overlaps another one of its key, and none is lost.
import type { OrderedJob } from '../support/ordered/ordered-jobs.js';
import { becomesDeadLetter } from '../support/ordered/ordered-jobs.js';

export interface OrderedEvent {
  /** By the clock that all processes share. */
  readonly atMs: number;
  /** Which process. */
  readonly life: number;
  readonly word: 'run' | 'end' | 'settled';
  readonly n: number;
  /** Of a run the position, else `final` or `open`. */
  readonly detail: string;
}

export interface OrderedFacts {
  readonly jobs: readonly OrderedJob[];
  readonly events: readonly OrderedEvent[];
  /** When a process was told to end; until then what it began goes on. */
  readonly killedMs: ReadonlyMap<number, number>;
  /** Numbers of the messages that are dead letters. */
  readonly letters: ReadonlySet<number>;
  readonly backlog: number;
}

/** Lines of a key's log that a violation shows. */
const SHOWN_LINES = 40;

export function orderedViolations(facts: OrderedFacts): readonly string[] {
  const keys = grouped(facts.jobs, ({ key }) => key);
  const keyOf = new Map(facts.jobs.map(({ n, key }) => [n, key]));
  const inTime = facts.events.toSorted((a, b) => a.atMs - b.atMs);
  const logs = grouped(inTime, ({ n }) => keyOf.get(n) ?? '?');
  return [
    ...(facts.backlog === 0 ? [] : [`a backlog of ${facts.backlog} is left`]),
    ...[...keys].flatMap(([key, jobs]) => keyViolations(key, jobs, logs.get(key) ?? [], facts)),
  ];
}

/** The first violation of order with the key's log up to it, and everything that is lost. */
function keyViolations(
  key: string,
  jobs: readonly OrderedJob[],
  log: readonly OrderedEvent[],
  { killedMs, letters }: OrderedFacts,
): readonly string[] {
  const [disorder] = firstDisorder(jobs, log, killedMs);
  const lost = jobs.flatMap((job) => lossOf(job, log, letters));
  return [
    ...(disorder === undefined ? [] : [`key ${key}: ${disorder.says}\n${shown(log.slice(0, disorder.at + 1))}`]),
    ...(lost.length === 0 ? [] : [`key ${key}: ${lost.join('; ')}\n${shown(log)}`]),
  ];
}

interface Disorder {
  /** Index of the event in the log. */
  readonly at: number;
  readonly says: string;
}

function* firstDisorder(
  jobs: readonly OrderedJob[],
  log: readonly OrderedEvent[],
  killedMs: ReadonlyMap<number, number>,
): Generator<Disorder> {
  const last = new Map<number, OrderedEvent>();
  const positions = new Map<number, string>();
  for (const [at, event] of log.entries()) {
    if (event.word === 'run') {
      for (const { n } of jobs) {
        const says = n < event.n ? unresolved(n, last.get(n), event) : goingOn(last.get(n), event, killedMs);
        if (says !== undefined) yield { at, says };
      }
      positions.set(event.n, event.detail);
      const wrong = [...positions].find(([n, position]) => Math.sign(n - event.n) !== compared(position, event.detail));
      if (wrong !== undefined) yield { at, says: `the position of ${event.n} does not sort as that of ${wrong[0]}` };
    }
    last.set(event.n, event);
  }
}

/**
 * Why an earlier message is not resolved when a later one starts. The same process must have made its settlement; of another
 * one the acknowledgement may have been made and not told.
 */
function unresolved(
  n: number,
  earlier: OrderedEvent | undefined,
  { n: later, life }: OrderedEvent,
): string | undefined {
  if (earlier === undefined) return `${later} started before ${n} ever did`;
  if (earlier.detail !== 'final')
    return `${later} started although ${n} was not resolved (${earlier.word} in process ${earlier.life})`;
  if (earlier.life === life && earlier.word !== 'settled') return `${later} started although ${n} was not settled yet`;
  return undefined;
}

function compared(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function goingOn(
  other: OrderedEvent | undefined,
  { n, atMs }: OrderedEvent,
  killedMs: ReadonlyMap<number, number>,
): string | undefined {
  if (other?.word !== 'run' || (killedMs.get(other.life) ?? Infinity) <= atMs) return undefined;
  return `${n} started while ${other.n} ran in process ${other.life}`;
}

function lossOf(
  { n, kind }: OrderedJob,
  log: readonly OrderedEvent[],
  letters: ReadonlySet<number>,
): readonly string[] {
  const done = log.some((event) => event.n === n && event.word === 'end' && event.detail === 'final');
  if (becomesDeadLetter(kind)) return letters.has(n) ? [] : [`${n} (${kind}) is gone without a dead letter`];
  if (letters.has(n)) return [`${n} (${kind}) is a dead letter`];
  return done ? [] : [`${n} (${kind}) was never done`];
}

function shown(log: readonly OrderedEvent[]): string {
  const [first] = log;
  return log
    .slice(-SHOWN_LINES)
    .map(({ atMs, life, word, n, detail }) => {
      const ms = (atMs - (first?.atMs ?? 0)).toFixed(1).padStart(9);
      return `      ${ms} ms, process ${life}: ${word} ${n} ${detail}`;
    })
    .join('\n');
}

export function grouped<T, K>(list: readonly T[], keyOf: (item: T) => K): ReadonlyMap<K, readonly T[]> {
  const groups = new Map<K, T[]>();
  for (const item of list) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
