// The transaction model: what transactions of the embedded broker promise, checked from outside on random programs of clients, of a
// process that dies at any call to its stores, of calls that fail, and of notices that get lost. The rules:
//
// - `decided`: a header is open once, ends once and never changes; whoever was answered that it is committed, or aborted, is right;
//   whoever is refused asked for what it did not become, or long after its end (T-30, T-36).
// - `isolated`: no reader gets a message of a transaction whose header does not say that it is committed, in whatever life (T-07).
// - `order`: no reader gets a message that is behind one of an open transaction (T-07); on Exclusive and Failover everything comes in
//   the order of the topic, but for what was in a transaction.
// - `withheld`: what was acknowledged in a transaction comes to nobody while that is open (T-15).
// - `conflict`: of two transactions that acknowledge the same message one by one, one is refused until the other is aborted (T-10). Not so
//   with cumulative acknowledgements (T-12). Without faults no acknowledgement is refused for nothing.
// - `stuck`: what an abort frees comes again on Shared by itself (T-17); on Key_Shared too, once nobody has to be waited for.
// - `atomic`: in the end all that was published in a committed transaction is there for readers and all that was acknowledged in it
//   is acknowledged, and nothing of an aborted one.
// - `durable`: what was answered stays so: messages are there, acknowledged ones never come again, also after the last death.
// - `converged`: some minutes later every end is in effect everywhere, also where no notice came (T-38).
// - `left`: then nothing is left of a transaction but the counter, how far outcomes are in effect, and what was aborted for as long
//   as it is in the log; nothing of a deleted topic (T-37, T-45).
// - `error`: nobody is told what does not happen.
//
// Not known, so not checked: what a client was not answered, or was told to be unknown. Clients commit only what was answered, but for
// rude ones.
import { checkEnd } from './model-end.js';
import { ModelWorld } from './model-world.js';
import type { Violation } from './observer.js';
import type { Program } from './program.js';
import { shrunk } from './shrink.js';

export interface ModelRun {
  readonly violations: readonly Violation[];
  /** What happened, a line each. */
  readonly story: readonly string[];
  /** How each ended. */
  readonly transactions: readonly string[];
  /** Of the process, in the program. */
  readonly deaths: number;
}

/** How many smaller programs are tried until one is small enough. */
const MOST_SMALLER = 1_500;

export async function runModel(program: Program): Promise<ModelRun> {
  const world = new ModelWorld(program);
  const { observer } = world;
  try {
    await world.start();
    await world.run();
    await checkEnd(world);
  } catch (error) {
    observer.violated('error', error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  const { violations, story } = observer;
  const transactions = [...observer.transactions.values()].map(({ state = '' }) => state);
  return { violations, story, transactions, deaths: world.deaths };
}

/** What a person needs of a program that violates a rule: that rule, and the smallest one that violates it as well. */
export async function explained(program: Program, [first]: readonly Violation[]): Promise<readonly string[]> {
  if (first === undefined) return [];
  const violates = async (smaller: Program): Promise<boolean> =>
    (await runModel(smaller)).violations.some(({ rule }) => rule === first.rule);
  const smallest = await shrunk(program, violates, MOST_SMALLER);
  const { story } = await runModel(smallest);
  return [
    `${first.rule}: ${first.text}`,
    'the smallest program that violates this rule, as a regression case:',
    `  setting: ${JSON.stringify(smallest.setting)},`,
    '  steps: [',
    ...smallest.steps.map((step) => `    ${JSON.stringify(step)},`),
    '  ]',
    'and what happens in it:',
    ...story.map((line) => `  ${line}`),
  ];
}
