// What must hold once a service has worked off its jobs, however often it died: every one was done or is a dead letter that
// says why, and its follow-ups are there. Decided on what the service told and what the broker has.
import type { ReceivedMessage } from '../../../src/core/message.js';
import type { Job } from './service-jobs.js';
import { causeOf, followsOf } from './service-jobs.js';
import type { ServicePlace } from './service-place.js';

export interface ServiceFacts {
  /** Of all lives, in order. */
  readonly told: readonly string[];
  readonly letters: readonly ReceivedMessage[];
  readonly follows: readonly ReceivedMessage[];
  readonly backlog: number;
}

/** Reads what is left; to be asked once nothing moves any more. */
export async function serviceFacts(
  place: ServicePlace,
  jobs: readonly Job[],
  told: readonly string[],
): Promise<ServiceFacts> {
  const dead = jobs.filter(({ kind }) => causeOf(kind) !== undefined).length;
  const follows = jobs.reduce((sum, { kind }) => sum + followsOf(kind), 0);
  const [letters, followUps, backlog] = await Promise.all([
    place.deadLetters(dead),
    place.follows(follows),
    place.backlog(),
  ]);
  return { told, letters, follows: followUps, backlog };
}

/** A sentence for each thing that does not hold. */
export function serviceViolations(jobs: readonly Job[], facts: ServiceFacts): readonly string[] {
  const done = new Set(facts.told.filter((line) => line.startsWith('done ')).map((line) => line.slice(5)));
  const letters = grouped(facts.letters, ({ properties }) => properties['id'] ?? '?');
  return [
    ...(facts.backlog === 0 ? [] : [`a backlog of ${facts.backlog} is left`]),
    ...jobs.flatMap((job) => endingViolations(job, done.has(job.id), letters.get(job.id) ?? [])),
    ...followViolations(jobs, facts.follows),
  ];
}

function endingViolations({ id, kind }: Job, done: boolean, letters: readonly ReceivedMessage[]): readonly string[] {
  const expected = causeOf(kind);
  const causes = [...new Set(letters.map(({ properties }) => properties['pulsework-cause']))].join(', ');
  if (expected === undefined) {
    return [
      ...(done ? [] : [`${id} is acknowledged and was never handled`]),
      ...(letters.length === 0 ? [] : [`${id} is a dead letter (${causes})`]),
    ];
  }
  if (letters.length === 0) return [`${id} is gone without a dead letter`];
  return [
    ...(causes === expected ? [] : [`${id} is a dead letter because of ${causes}, not ${expected}`]),
    ...(done ? [`${id} was handled`] : []),
  ];
}

/** Each is there, and all copies of one carry the same id, by which receivers know them. */
function followViolations(jobs: readonly Job[], follows: readonly ReceivedMessage[]): readonly string[] {
  const byName = grouped(follows, (message) => nameOf(JSON.parse(Buffer.from(message.payload ?? '').toString())));
  const expected = jobs.flatMap(({ id, kind }) =>
    Array.from({ length: followsOf(kind) }, (_, n) => nameOf({ of: id, n })),
  );
  const ids = new Map([...byName].map(([name, copies]) => [name, new Set(copies.map(messageIdOf))]));
  const different = new Set(follows.map(messageIdOf)).size;
  return [
    ...expected.filter((name) => !byName.has(name)).map((name) => `follow-up ${name} is missing`),
    ...[...byName.keys()].filter((name) => !expected.includes(name)).map((name) => `follow-up ${name} is of no job`),
    ...[...ids].filter(([, each]) => each.size > 1).map(([name]) => `copies of follow-up ${name} have different ids`),
    ...(different < byName.size ? [`${byName.size} follow-ups share ${different} ids`] : []),
  ];
}

function nameOf(follow: unknown): string {
  const { of, n } = follow as { readonly of: string; readonly n: number };
  return `${n} of ${of}`;
}

function messageIdOf({ properties }: ReceivedMessage): string | undefined {
  return properties['pulsework-message-id'];
}

function grouped<T>(list: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const item of list) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}
