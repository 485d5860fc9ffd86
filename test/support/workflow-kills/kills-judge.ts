// What must hold when all workflows of a run have ended, however many processes died meanwhile: of what the store says in the end,
// and of what a ledger outside of it says was done. Pure.
import { isDeepStrictEqual } from 'node:util';
import { hasEnded } from '../../../src/core/workflow-journal.js';
import type { WorkflowSnapshot } from '../../../src/workflow.js';
import { completedOf, finalEnds, inOrder } from '../workflow/journal-ends.js';
import type { Effect } from './kills-plan.js';
import { UNDOING, plannedStatements, plannedWorkflows } from './kills-plan.js';
import type { LedgerLines } from './ledger.js';

export type EndedWorkflow = Pick<WorkflowSnapshot, 'record' | 'journal'>;

/** @param count how many were started. @returns what did not hold, a sentence each */
export function judgedKills(count: number, ended: readonly EndedWorkflow[], lines: LedgerLines): readonly string[] {
  return [
    ...endProblems(count, ended),
    ...ended.flatMap((workflow) => repeatProblems(workflow)),
    ...ended.flatMap((workflow) => undoneProblems(workflow, lines.effects)),
    ...effectProblems(ended, lines.effects),
    ...receiptProblems(ended, lines.receipts),
  ];
}

/** Every workflow ends as it may, with the right result; and there are no others. */
function endProblems(count: number, ended: readonly EndedWorkflow[]): readonly string[] {
  const planned = plannedWorkflows(count);
  const statements = planned
    .filter(({ name }) => name === 'month-closing')
    .flatMap(({ id }) => plannedStatements(id).map((child) => ({ ...child, name: 'statement', result: 10 })));
  const expected = new Map([...planned, ...statements].map((each) => [`${each.name} ${each.id}`, each]));
  const problems = ended.flatMap(({ record }) => {
    const text = `${record.name} ${record.id}`;
    const right = expected.get(text);
    expected.delete(text);
    if (right === undefined) return [`${text} was never started`];
    if (!hasEnded(record.status))
      return [`${text} has not ended: it is ${record.status}, ${record.error?.message ?? ''}`];
    if (!right.statuses.includes(record.status))
      return [`${text} is ${record.status} (${record.error?.message ?? ''}), right is ${right.statuses.join(' or ')}`];
    if (record.status !== 'completed' || isDeepStrictEqual(inOrder(record.result), inOrder(right.result))) return [];
    return [`the result of ${text} is ${JSON.stringify(record.result)}, right is ${JSON.stringify(right.result)}`];
  });
  return [...problems, ...[...expected.keys()].map((text) => `${text} is not there`)];
}

/** Once the end of a step is recorded, no attempt of it begins. */
function repeatProblems({ record, journal }: EndedWorkflow): readonly string[] {
  const over = new Set<number>();
  return journal.flatMap((entry) => {
    if (entry.kind === 'completed' || entry.kind === 'failed') {
      const isSecond = over.has(entry.at);
      over.add(entry.at);
      return isSecond ? [`command ${entry.at} of ${record.name} ${record.id} has two ends`] : [];
    }
    const isLate = entry.kind === 'attempt' && over.has(entry.at);
    return isLate ? [`attempt ${entry.attempt} of ${keyOf(record, entry.at)} began after its end was recorded`] : [];
  });
}

/** In one that failed or was cancelled each result that can be undone was, in reverse order; in others nothing was. */
function undoneProblems({ record, journal }: EndedWorkflow, effects: readonly Effect[]): readonly string[] {
  const { name, id, status } = record;
  const undoing = UNDOING[name] ?? {};
  const done = completedOf(journal, 'step').filter(({ name: step }) => Object.hasOwn(undoing, step));
  const expected = status === 'completed' ? [] : done.toReversed().map(({ name: step }) => step);
  const undone = completedOf(journal, 'compensate');
  const recorded = undone.map(({ name: step }) => step);
  const words = undone.map(({ at }) => [
    ...new Set(effects.filter(({ key }) => key === keyOf(record, at)).map(({ what }) => what)),
  ]);
  const right = undone.map(({ name: step }) => [`${undoing[step] ?? '?'} ${id}`]);
  const problems: string[] = [];
  if (!isDeepStrictEqual(recorded, expected))
    problems.push(`${name} ${id}, ${status}, has undone ${recorded.join(', ')}; right is ${expected.join(', ')}`);
  if (!isDeepStrictEqual(words, right))
    problems.push(`${name} ${id} was undone by ${JSON.stringify(words)}; right is ${JSON.stringify(right)}`);
  const first = undone.map(({ at }) => effects.findIndex(({ key }) => key === keyOf(record, at)));
  if (
    !isDeepStrictEqual(
      first,
      first.toSorted((a, b) => a - b),
    )
  )
    problems.push(`${name} ${id} was undone in another order than its journal says`);
  return problems;
}

/**
 * What was done is of an attempt that was recorded before, at most once each, and of a step whose end is recorded. A handler may run
 * more than once for an attempt: its delivery comes again.
 */
function effectProblems(ended: readonly EndedWorkflow[], effects: readonly Effect[]): readonly string[] {
  const ends = new Set<string>();
  const attempts = new Set<string>();
  for (const { record, journal } of ended) {
    for (const at of finalEnds(journal)) ends.add(keyOf(record, at));
    for (const entry of journal)
      if (entry.kind === 'attempt') attempts.add(`${keyOf(record, entry.at)} ${entry.attempt}`);
  }
  const seen = new Set<string>();
  return effects.flatMap(({ key, attempt, what, remote }) => {
    const isRepeat = seen.has(`${key} ${attempt} ${what}`);
    seen.add(`${key} ${attempt} ${what}`);
    if (!ends.has(key)) return [`"${what}" was done, and the end of ${key} is not recorded`];
    if (!attempts.has(`${key} ${attempt}`))
      return [`"${what}" was done in attempt ${attempt} of ${key}, which is not recorded`];
    return isRepeat && remote !== true ? [`"${what}" was done twice in attempt ${attempt} of ${key}`] : [];
  });
}

/** Each message of a completed order came, under its one id, and no other. */
function receiptProblems(ended: readonly EndedWorkflow[], receipts: readonly string[]): readonly string[] {
  const expected = ended
    .filter(({ record }) => record.name === 'fulfil-order' && record.status === 'completed')
    .flatMap(({ record, journal }) => completedOf(journal, 'publish').map(({ at }) => `workflow/${keyOf(record, at)}`));
  const came = [...new Set(receipts)].toSorted();
  if (isDeepStrictEqual(came, expected.toSorted())) return [];
  return [`receipts ${came.join(', ')} came; right is ${expected.toSorted().join(', ')}`];
}

function keyOf({ name, id, run }: EndedWorkflow['record'], at: number): string {
  return `${name}/${id}/${run}/${at}`;
}
