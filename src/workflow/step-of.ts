// From what `flow.step` was given to a step as it is planned: checked, completed, and done here or by a handler.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { describeValue } from '../core/errors.js';
import type { MessageOptions } from '../core/message.js';
import { OptionChecker } from '../core/options.js';
import { checkRedeliveryPolicy, resolveRedeliveryPolicy } from '../core/redelivery-policy.js';
import type { Topic } from '../core/topic.js';
import { isTopic, topic as topicNamed } from '../core/topic.js';
import type { PlannedCompensation, PlannedPolicy, StepWork } from './command.js';
import type { StepContext, StepOptions, StepPolicy } from './flow.js';
import type { RemoteWork } from './remote-steps.js';

interface RemoteGiven {
  readonly topic: Topic<never> | string;
  readonly input?: unknown;
  readonly result?: StandardSchemaV1 | undefined;
  readonly message?: MessageOptions | undefined;
}

interface RemoteUndoing extends StepPolicy {
  readonly topic: Topic<never> | string;
  readonly input: (done: never) => unknown;
  readonly message?: MessageOptions | undefined;
}

/** What the second argument of `flow.step` may be. */
export type GivenWork = ((context: StepContext) => unknown) | RemoteGiven;

type GivenCompensation = NonNullable<StepOptions<never>['compensate']> | RemoteUndoing;

/** @throws ConfigurationError with all that is wrong */
export function stepOf(name: string, work: GivenWork, options: StepOptions<never>): StepWork {
  const check = new OptionChecker(`step ${JSON.stringify(name)}`);
  if (typeof work !== 'function') checkRemote(work, check);
  check.options(options, ['redelivery', 'timeoutMs', 'compensate']);
  checkPolicy(options, check);
  const { compensate } = options;
  if (compensate !== undefined) checkCompensation(compensate, check);
  check.throwIfAny();
  const done = typeof work === 'function' ? { run: work } : { remote: remoteWork(work, () => work.input) };
  return {
    ...done,
    ...plannedPolicy(options),
    compensate: compensate === undefined ? undefined : plannedCompensation(compensate),
  };
}

function checkRemote(work: unknown, check: OptionChecker): void {
  if (typeof work !== 'object' || work === null)
    return check.problem(`its work must be a function, or { topic, input } for a handler, got ${describeValue(work)}`);
  const given = work as Readonly<Record<string, unknown>>;
  check.unknownOptions(given, ['topic', 'input', 'result', 'message']);
  checkTopic(given['topic'], '', check);
  const { result } = given;
  if (result !== undefined && (result === null || !('~standard' in Object(result))))
    check.problem(`"result" must be a Standard Schema (zod, valibot, arktype, ...), got ${describeValue(result)}`);
}

function checkCompensation(compensate: GivenCompensation, check: OptionChecker): void {
  if (typeof compensate === 'function') return;
  const place = 'compensate.';
  if (!check.object('compensate', compensate, 'a function, { run, redelivery, timeoutMs } or { topic, input }')) return;
  if ('topic' in compensate) {
    check.unknownOptions(compensate, ['topic', 'input', 'message', 'redelivery', 'timeoutMs'], place);
    check.required(compensate, { input: 'a function that makes the payload' }, place);
    check.function('compensate.input', compensate.input);
    checkTopic(compensate.topic, place, check);
  } else {
    check.unknownOptions(compensate, ['run', 'redelivery', 'timeoutMs'], place);
    check.required(compensate, { run: 'a function' }, place);
  }
  checkPolicy(compensate, check);
}

function checkTopic(given: unknown, place: string, check: OptionChecker): void {
  if ((typeof given === 'string' && given !== '') || isTopic(given)) return;
  check.problem(`"${place}topic" must be a topic() or its name, got ${describeValue(given)}`);
}

function checkPolicy({ redelivery, timeoutMs }: StepPolicy, check: OptionChecker): void {
  checkRedeliveryPolicy(redelivery, check);
  check.durationMs('timeoutMs', timeoutMs, { minMs: 1 });
}

function plannedPolicy({ redelivery, timeoutMs }: StepPolicy): PlannedPolicy {
  return { policy: resolveRedeliveryPolicy(redelivery), timeoutMs };
}

function plannedCompensation(compensate: GivenCompensation): PlannedCompensation {
  if (typeof compensate === 'function') return { run: compensate, ...plannedPolicy({}) };
  if (!('topic' in compensate)) return { run: compensate.run, ...plannedPolicy(compensate) };
  const remote = (done: never): RemoteWork => remoteWork(compensate, () => compensate.input(done));
  return { remote, ...plannedPolicy(compensate) };
}

function remoteWork({ topic, message, ...rest }: RemoteGiven | RemoteUndoing, input: () => unknown): RemoteWork {
  const result = 'result' in rest ? rest.result : undefined;
  return { topic: typeof topic === 'string' ? topicNamed(topic) : topic, input, message, result };
}
