// What the death of the process does to a message, by the moment it comes: the order of the Settler's calls, told from
// the other side. Of persistent topics nothing is ever lost; what differs is what runs again, how soon, and which attempt it is.
import { durationText } from '../core/duration-text.js';
import { redeliversSingly } from '../core/subscription-spec.js';
import type { CrashConsequence, ExplanationFacts, WaitExplanation } from './explanation.js';
import type { HandlerPlan } from './handler-plan.js';
import { placelessOf } from './placeless-messages.js';

export function crashConsequences(
  plan: HandlerPlan,
  waits: readonly WaitExplanation[],
  { recordsAttempts }: ExplanationFacts,
): readonly CrashConsequence[] {
  const placeless = placelessOf(plan.spec);
  if (placeless === 'all') return [GONE];
  const waiting = recordsAttempts
    ? 'the broker delivers it again at once; the record says when it is due, and it goes on waiting'
    : 'the broker delivers it again at once: the rest of the wait is lost';
  const uncounted = recordsAttempts ? '' : ', and the broker has not counted the failure before it';
  const holds = waits.some(({ strategies }) => strategies.includes('hold'));
  return [
    { stage: 'before the run', consequence: 'the broker delivers it again, no attempt spent' },
    { stage: 'during the run', consequence: duringRun(recordsAttempts) },
    followUps(plan),
    ...(holds ? [{ stage: 'while held by id', consequence: waiting + uncounted }] : []),
    { stage: 'while kept in place', consequence: waiting },
    ...(plan.retry === undefined ? [] : republished()),
    givenUp(plan),
    { stage: 'which attempt it is then', consequence: attemptsKnown(plan, recordsAttempts) },
    ...(placeless === 'some' ? [GONE] : []),
  ];
}

/** Whatever is on record of it. */
const GONE: CrashConsequence = {
  stage: 'at any moment, with a message of a topic that is not persistent',
  consequence: 'it is gone: no broker has kept it',
};

/** Where the failures of earlier deliveries can be read after this process has died. */
function attemptsKnown({ spec, ordering, retry, brokerMayKeepOrder }: HandlerPlan, recordsAttempts: boolean): string {
  if (recordsAttempts) return 'the next one: attempts are on record';
  const letters = retry === undefined ? '' : 'a retry letter carries its attempts; otherwise ';
  if (brokerMayKeepOrder)
    return "by the broker's count where it keeps the order of a key and another consumer is connected; else attempt 1 again";
  if (!redeliversSingly(spec.type) || ordering !== 'none') return 'attempt 1 again: failures were counted here only';
  return `${letters}by the broker's count while another consumer is connected, outside producer batches; else attempt 1 again`;
}

function duringRun(recordsAttempts: boolean): string {
  return recordsAttempts
    ? 'it runs again, alone in its process; only a death while it runs alone spends an attempt, in the end it is given up as process-died'
    : 'it runs again, and the run that died is not counted: a message that kills its process does so again and again';
}

function followUps({ publishes, transactional }: HandlerPlan): CrashConsequence {
  if (transactional !== undefined) {
    const stage = 'in the middle of its transaction';
    const limit = durationText(transactional.timeoutMs);
    return {
      stage,
      consequence: `all of it counts or nothing; where nothing, it runs again once the broker has ended the transaction, after ${limit}`,
    };
  }
  const stage = 'after a follow-up was published, before the acknowledgement';
  if (publishes?.size === 0) return { stage, consequence: 'cannot be: it declares that it publishes nothing' };
  return {
    stage,
    consequence: 'it runs again and its follow-ups are published again, each with the same pulsework-message-id',
  };
}

function republished(): readonly CrashConsequence[] {
  return [
    {
      stage: 'after its retry letter was published, before the acknowledgement',
      consequence: 'both live on: the letter runs when it is due, and the message is delivered again at once',
    },
    {
      stage: 'while it waits in the retry letter topic',
      consequence: 'nothing: the wait and the attempts are with the broker',
    },
  ];
}

function givenUp({ deadLetter, keyBlocks }: HandlerPlan): CrashConsequence {
  if (keyBlocks)
    return { stage: 'while its key is blocked', consequence: 'it is delivered again, and its key after it' };
  switch (deadLetter) {
    case 'publish':
      return {
        stage: 'after its dead letter was published, before the acknowledgement',
        consequence: 'it is delivered again; a second dead letter would have the same ORIGIN_MESSAGE_ID',
      };
    case 'skip':
      return { stage: 'after it was given up, before the acknowledgement', consequence: 'it is delivered again' };
    case 'block':
      return { stage: 'while it is blocked', consequence: 'it is delivered again' };
  }
}
