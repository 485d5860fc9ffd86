// What the lives of the service of `kills-program.ts` told, judged: each job whose receipt was given has one result and one entry in
// the journal, of the same attempt; what was committed stays, what was aborted never was.
import { JOURNAL, RESULTS } from './kills-settings.js';

export interface LifeTold {
  readonly told: readonly string[];
  readonly isLast: boolean;
}

export interface KillsFacts {
  readonly committed: number;
  readonly aborted: number;
  /** Transactions that a kill cut. */
  readonly cut: number;
}

export interface Judgement extends KillsFacts {
  readonly violations: readonly string[];
}

export function judged(lives: readonly LifeTold[]): Judgement {
  const all = lives.flatMap(({ told }) => told);
  const last = lives.at(-1)?.told ?? [];
  const [results, journal] = [linesAfter(last, `saw ${RESULTS} `), linesAfter(last, `saw ${JOURNAL} `)];
  const [committed, aborted] = [linesAfter(all, 'committed '), linesAfter(all, 'aborted ')];
  const seen = linesAfter(all, `saw ${RESULTS} `);
  const ends = [...committed, ...aborted, ...linesAfter(all, 'failed ').map((line) => line.replace(/ \S+$/, ''))];
  return {
    committed: committed.length,
    aborted: aborted.length,
    cut: linesAfter(all, 'try ').filter((attempt) => !ends.includes(attempt)).length,
    violations: [
      ...linesAfter(all, 'late ').map((what) => `in the end ${what}`),
      ...(last.includes('closed') ? [] : ['the last life did not come to its end']),
      ...jobViolations(all, results),
      ...(sameLines(results, journal) ? [] : [`results and journal differ: ${difference(results, journal)}`]),
      ...missing(committed, results).map((attempt) => `committed, and not there: ${attempt}`),
      ...present(aborted, seen).map((attempt) => `aborted, and seen: ${attempt}`),
      ...missing(seen, results).map((attempt) => `seen once, and gone later: ${attempt}`),
    ],
  };
}

function jobViolations(all: readonly string[], results: readonly string[]): readonly string[] {
  const jobs = results.map((attempt) => attempt.split(' ')[0] ?? '');
  const [sent, asked] = [linesAfter(all, 'sent '), linesAfter(all, 'send ')];
  return [
    ...missing(sent, jobs).map((job) => `its receipt was given, and it has no result: ${job}`),
    ...jobs.filter((job, at) => jobs.indexOf(job) !== at).map((job) => `it has more results than one: ${job}`),
    ...missing(jobs, asked).map((job) => `nobody published it: ${job}`),
  ];
}

/** What follows a word, of the lines that begin with it. */
function linesAfter(lines: readonly string[], start: string): readonly string[] {
  return lines.filter((line) => line.startsWith(start)).map((line) => line.slice(start.length));
}

function missing(wanted: readonly string[], there: readonly string[]): readonly string[] {
  const known = new Set(there);
  return [...new Set(wanted)].filter((each) => !known.has(each));
}

function present(unwanted: readonly string[], there: readonly string[]): readonly string[] {
  const known = new Set(there);
  return [...new Set(unwanted)].filter((each) => known.has(each));
}

function sameLines(some: readonly string[], others: readonly string[]): boolean {
  return some.toSorted().join('\n') === others.toSorted().join('\n');
}

function difference(some: readonly string[], others: readonly string[]): string {
  return [...missing(some, others), ...missing(others, some)].slice(0, 5).join(', ');
}
