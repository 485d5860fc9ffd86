// What the lives of a killed service (`kills-life.ts`) told, judged: each transaction is there as a whole or not at all; what was
// committed stays, what was aborted never was; each job whose receipt was given is in one transaction.

export interface KillsFacts {
  readonly committed: number;
  readonly aborted: number;
  /** Transactions that a kill cut. */
  readonly cut: number;
}

export interface Judgement extends KillsFacts {
  readonly violations: readonly string[];
}

/** @param told all lines of each life; the last one worked off everything and told all that there is. */
export function judged(told: readonly (readonly string[])[]): Judgement {
  const all = told.flat();
  const last = told.at(-1) ?? [];
  const tries = new Map(
    after(all, 'try ')
      .map((line) => splitAt(line, ' '))
      .map(([tx, items]) => [tx, itemsOf(tx, items)]),
  );
  const [committed, aborted] = [after(all, 'committed '), after(all, 'aborted ')];
  const [seen, there] = [after(all, 'saw '), after(last, 'saw ')];
  const ended = new Set([...committed, ...aborted, ...after(all, 'failed ').map((line) => splitAt(line, ' ')[0])]);
  const whole = new Set(there.map(txOf));
  return {
    committed: committed.length,
    aborted: aborted.length,
    cut: [...tries.keys()].filter((tx) => !ended.has(tx)).length,
    violations: [
      ...after(all, 'late ').map((what) => `in the end ${what}`),
      ...(last.includes('closed') ? [] : ['the last life did not come to its end']),
      ...twice(there).map((line) => `it is there twice: ${line}`),
      ...missing(there, [...tries.values()].flat()).map((line) => `nobody published it: ${line}`),
      ...[...whole]
        .flatMap((tx) => missing(tries.get(tx) ?? [], there))
        .map((line) => `of its transaction there is only a part, without ${line}`),
      ...committed.filter((tx) => !whole.has(tx)).map((tx) => `committed, and not there: ${tx}`),
      ...present(aborted, seen.map(txOf)).map((tx) => `aborted, and seen: ${tx}`),
      ...missing(seen, there).map((line) => `seen once, and gone later: ${line}`),
      ...jobViolations(all, there),
    ],
  };
}

function jobViolations(all: readonly string[], there: readonly string[]): readonly string[] {
  const done = [...new Set(there.map((line) => `${txOf(line)} ${jobOf(line)}`))].map((line) => splitAt(line, ' ')[1]);
  const jobs = (word: string): readonly string[] => after(all, word).flatMap((line) => line.split(','));
  return [
    ...missing(jobs('sent '), done).map((job) => `its receipt was given, and it is in no transaction: ${job}`),
    ...twice(done).map((job) => `it is in more transactions than one: ${job}`),
    ...missing(done, jobs('send ')).map((job) => `nobody asked for it: ${job}`),
  ];
}

/** As they are seen: `<output> <transaction> <item>`. */
function itemsOf(tx: string, items: string): readonly string[] {
  return items
    .split(',')
    .map((each) => splitAt(each, ':'))
    .map(([output, item]) => `${output} ${tx} ${item}`);
}

function txOf(seen: string): string {
  return seen.split(' ')[1] ?? '';
}

/** An item is the job with its own number behind it. */
function jobOf(seen: string): string {
  const item = seen.split(' ')[2] ?? '';
  return item.slice(0, item.lastIndexOf('.'));
}

function splitAt(line: string, sign: string): readonly [string, string] {
  const at = line.indexOf(sign);
  return [line.slice(0, at), line.slice(at + 1)];
}

/** What follows a word, of the lines that begin with it. */
function after(lines: readonly string[], start: string): readonly string[] {
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

function twice(lines: readonly string[]): readonly string[] {
  return [...new Set(lines.filter((line, at) => lines.indexOf(line) !== at))];
}
