// The ordering model: what `ordering: 'key'` on Key_Shared promises, checked by an observer outside the runtime on random
// interleavings, with runs of several processes on one embedded broker in virtual time. The rules:
//
// - `order`: a message reaches a handler only when the broker holds every earlier one of its key and partition for acknowledged,
//   which is the way of a dead letter too. No exception, not across an unload, a restart or a crash. A message of a producer
//   batch counts as acknowledged once the broker has been told, although brokers forget that in an unload.
// - `overlap`: one run per key and partition at a time. Exceptions, both of two different processes: the run of the other one goes
//   on over a connection that was lost since (unload, restart), or its message has been acknowledged meanwhile, by a process
//   that had it before such a loss. A process that crashed runs nothing any more.
// - `loss`: what the broker holds for acknowledged was handled with success, or is a dead letter because a run said so.
// - `wedge`: once every run succeeds, nothing is broken and a person decides about blocked keys, all is acknowledged, and every
//   process ends its drain.
// - `once` and `attempt`, in interleavings without crash, unload, restart and lost call: each message has one success or one dead
//   letter, and the n-th run that counts is attempt n. Exceptions: failures of a message that waited in place are known to its
//   process alone, and gone when that one leaves; after a release attempts begin anew in the process that was told, while the broker
//   goes on counting what it was asked for, so that another process may see up to all failures.
//
// Not promised, so not in the programs: batches that mix keys where the broker keeps the order of a failed key, or where more than
// one process is there, since such a batch goes where its first message belongs.
import { ModelWorld } from './model-world.js';
import type { Violation } from './observer.js';
import type { Program } from './program.js';
import { programText } from './program-text.js';
import { shrunk } from './shrink.js';

export interface ModelRun {
  readonly violations: readonly Violation[];
  /** What happened, a line each. */
  readonly story: readonly string[];
}

/** How many smaller interleavings are tried until one is small enough. */
const MOST_SMALLER = 2_000;

export async function runModel(program: Program): Promise<ModelRun> {
  const world = new ModelWorld(program);
  const { observer } = world;
  await world.run().catch((error: unknown) => {
    observer.violated('error', error instanceof Error ? (error.stack ?? error.message) : String(error));
  });
  return observer;
}

/** What a person needs of an interleaving that violates a rule: that rule, and the smallest one that violates it as well. */
export async function explained(program: Program, [first]: readonly Violation[]): Promise<readonly string[]> {
  if (first === undefined) return [];
  const violates = async (smaller: Program): Promise<boolean> =>
    (await runModel(smaller)).violations.some(({ rule }) => rule === first.rule);
  const smallest = await shrunk(program, violates, MOST_SMALLER);
  const { story } = await runModel(smallest);
  return [
    `${first.rule}: ${first.text}`,
    'the smallest interleaving that violates this rule, as a regression case:',
    ...programText(smallest).map((line) => `  ${line}`),
    'and what happens in it:',
    ...story.map((line) => `  ${line}`),
  ];
}
