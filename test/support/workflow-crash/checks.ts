// What must hold when a run is over, whatever went wrong in it. Each check looks at what was seen outside: the ledger, the messages,
// and what the store has really taken.
import { isDeepStrictEqual } from 'node:util';
import type { JournalEntry } from '../../../src/core/workflow-journal.js';
import { hasEnded } from '../../../src/core/workflow-journal.js';
import type { WorkflowSnapshot } from '../../../src/ports/workflow-store.js';
import { completedOf, finalEnds, inOrder } from '../workflow/journal-ends.js';
import type { Seen } from './office.js';
import type { CrashProgram } from './program.js';
import { happeningsOf } from './program.js';
import type { Story } from './story.js';
import { STORIES } from './stories.js';

/** What did not hold, a sentence each. */
export function violationsOf(program: CrashProgram, seen: Seen): readonly string[] {
  const story = STORIES[program.setting.story];
  const started = new Set(happeningsOf(program).flatMap((step) => (step.do === 'start' ? step.id : [])));
  const missing = [...started].filter((id) => !seen.workflows.some(({ record }) => record.id === id));
  return [
    ...seen.violations,
    ...missing.map((id) => `workflow ${id} was started and is not there`),
    ...(seen.deadLetters > 0 ? ['an event has become a dead letter'] : []),
    ...(seen.backlog > 0 ? [`${seen.backlog} events are not acknowledged`] : []),
    ...seen.workflows.flatMap((workflow) => endProblems(program, story, workflow)),
    ...seen.workflows.flatMap((workflow) => undoneProblems(story, workflow, seen)),
    ...effectProblems(seen),
    ...messageProblems(story, seen),
  ];
}

/** Every workflow ends, as it may, with the right result. */
function endProblems(program: CrashProgram, story: Story, { record, journal }: WorkflowSnapshot): readonly string[] {
  const { name, id, status, error, result } = record;
  if (!hasEnded(status))
    return [`${name} ${id} has not ended: it is ${status}, ${error?.message ?? ''} ${lastOf(journal)}`];
  const right = story.ends(program, name, id);
  if (!right.statuses.includes(status))
    return [`${name} ${id} is ${status} (${error?.message ?? ''}), right would be ${right.statuses.join(' or ')}`];
  if (status !== 'completed' || isDeepStrictEqual(inOrder(result), inOrder(right.result))) return [];
  return [`the result of ${name} ${id} is ${JSON.stringify(result)}, right would be ${JSON.stringify(right.result)}`];
}

/** In a failed or cancelled workflow each result that can be undone was, in the reverse order; in another one nothing was. */
function undoneProblems(story: Story, { record, journal }: WorkflowSnapshot, { effects }: Seen): readonly string[] {
  const { name, id, status } = record;
  const done = completedOf(journal, 'step').filter((command) => Object.hasOwn(story.undoing, command.name));
  const expected = status === 'completed' ? [] : done.toReversed().map((command) => command.name);
  const recorded = completedOf(journal, 'compensate').map((command) => command.name);
  const verbs = new Set(Object.values(story.undoing));
  const own = effects.map(({ what }) => what).filter((what) => what.split(' ')[1] === id);
  const seen = [...new Set(own.filter((what) => verbs.has(what.split(' ')[0] ?? '')))];
  const right = expected.map((step) => `${story.undoing[step]} ${id}`);
  const problems: string[] = [];
  if (!isDeepStrictEqual(recorded, expected))
    problems.push(
      `${name} ${id}, ${status}, has recorded as undone ${recorded.join(', ')}; right: ${expected.join(', ')}`,
    );
  if (!isDeepStrictEqual(seen, right))
    problems.push(`${name} ${id}, ${status}, has undone ${seen.join(', ')}; right: ${right.join(', ')}`);
  return problems;
}

/** What was done belongs to a step whose result is recorded, or its last failure. */
function effectProblems({ workflows, effects }: Seen): readonly string[] {
  const recorded = new Set(
    workflows.flatMap(({ record: { name, id, run }, journal }) =>
      [...finalEnds(journal)].map((at) => `${name}/${id}/${run}/${at}`),
    ),
  );
  return effects.flatMap(({ key, what }) => {
    if (key === undefined) return [`"${what}" was done outside of any step`];
    return recorded.has(key) ? [] : [`"${what}" was done, and the end of ${key} is not recorded`];
  });
}

/** A completed one has sent its message, under the one id, the others none. */
function messageProblems({ topic, workflow }: Story, { workflows, messageIds }: Seen): readonly string[] {
  if (topic === undefined) return [];
  const expected = workflows.flatMap(({ record: { name, id, run, status }, journal }) => {
    if (name !== workflow || status !== 'completed') return [];
    return completedOf(journal, 'publish').map(({ at }) => `workflow/${name}/${id}/${run}/${at}`);
  });
  if (isDeepStrictEqual(messageIds.toSorted(), expected.toSorted())) return [];
  return [`the messages of ${topic} are ${messageIds.join(', ')}; right: ${expected.join(', ')}`];
}

function lastOf(journal: readonly JournalEntry[]): string {
  return `(last entry: ${JSON.stringify(journal.at(-1) ?? null)})`;
}
