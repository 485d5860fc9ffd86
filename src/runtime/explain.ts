// explain(): what handlers will do, before or while they do it. Nothing is opened, started or called, but their backoffs.
import { ConfigurationError, describeValue } from '../core/errors.js';
import type { HandlerClass, HandlerDefinition } from '../core/handler-definition.js';
import { OptionChecker } from '../core/options.js';
import type { RedeliveryPolicyOptions } from '../core/redelivery-policy.js';
import { checkRedeliveryPolicy } from '../core/redelivery-policy.js';
import { DEFAULT_NAMESPACE, namespaceProblem } from '../core/topic-name.js';
import type { AttemptStore } from '../ports/attempt-store.js';
import type { Capability } from '../ports/transport.js';
import type { ExplanationFacts, HandlerExplanation } from './explanation.js';
import { explainHandler } from './explanation.js';
import { explanationText } from './explanation-text.js';
import type { HandlerPlan } from './handler-plan.js';
import { topicResolver } from './handler-plan.js';
import type { Runtime } from './runtime.js';
import type { HandlersContext } from './start-checks.js';
import { planHandlers } from './start-checks.js';

export interface ExplainOptions {
  /** As for `Runtime.start`. @default 'public/default' */
  readonly namespace?: string | undefined;
  /** As for `Runtime.start`. @default unchanged */
  readonly topics?: ((name: string) => string) | undefined;
  /** As for `Runtime.start`. @default exponential 1 s to 10 min, 10 deliveries */
  readonly redelivery?: RedeliveryPolicyOptions | undefined;
  /** As for `Runtime.start`: with one, crashes are counted. It is not opened. @default none */
  readonly attemptStore?: AttemptStore | undefined;
}

export interface Explanation {
  /** In the order in which they were given; the handlers of a class in the order of its methods. */
  readonly handlers: readonly HandlerExplanation[];
  /** For people: `console.log(explain(runtime).text)`. */
  readonly text: string;
}

/**
 * Per handler: how often and when a failing message comes back and how it waits in between, how long it takes at most
 * until it is given up, which topics are touched, what is promised of order, and what a crash does at each stage.
 * Handlers need no runtime and no broker. Each backoff is asked for all its waits, so it must have no side effects.
 * @throws ConfigurationError with every problem of the handlers, as `Runtime.start` does.
 */
export function explain(runtime: Runtime): Explanation;
export function explain(handlers: readonly (HandlerDefinition | HandlerClass)[], options?: ExplainOptions): Explanation;
export function explain(
  target: Runtime | readonly (HandlerDefinition | HandlerClass)[],
  options: ExplainOptions = {},
): Explanation {
  const { plans, facts } = explained.get(target) ?? plansOf(target, options);
  const handlers = plans.map((plan) => explainHandler(plan, facts));
  return { handlers, text: textOf(handlers) };
}

/** Handlers whose crashes end alike say so once. */
function textOf(handlers: readonly HandlerExplanation[]): string {
  const told = new Map<string, string>();
  const texts = handlers.map((explained) => {
    const crashes = JSON.stringify(explained.crashes);
    const same = told.get(crashes);
    if (same === undefined) told.set(crashes, explained.handler);
    return same === undefined ? explained.text : explanationText(explained, same);
  });
  return texts.join('\n\n');
}

interface Explained {
  readonly plans: readonly HandlerPlan[];
  readonly facts: ExplanationFacts;
}

/** What runtimes run: known here, so that their plans need not be public. */
const explained = new WeakMap<object, Explained>();

/** From now on `explain(runtime)` tells about these plans. */
export function explainable(runtime: Runtime, plans: readonly HandlerPlan[], facts: ExplanationFacts): void {
  explained.set(runtime, { plans, facts });
}

/** Nothing is known of the broker, so nothing is refused for its sake. */
const ANY_TRANSPORT: HandlersContext['transport'] = {
  name: 'any',
  capabilities: new Set<Capability>([
    'delayed-delivery',
    'pattern-subscriptions',
    'ordered-negative-ack',
    'transactions',
  ]),
};

function plansOf(handlers: unknown, options: ExplainOptions): Explained {
  const problems = optionProblems(handlers, options);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { namespace = DEFAULT_NAMESPACE, topics = (name: string) => name, redelivery } = options;
  const planned = planHandlers(handlers as readonly HandlerDefinition[], {
    fullName: topicResolver(topics, namespace),
    namespace,
    redelivery,
    transport: ANY_TRANSPORT,
    consumerName: (handler) => handler,
    hasResolver: true, // no instance is made
  });
  if (planned.problems.length > 0) throw new ConfigurationError(planned.problems);
  return { plans: planned.plans, facts: { recordsAttempts: options.attemptStore !== undefined } };
}

function optionProblems(handlers: unknown, options: ExplainOptions): readonly string[] {
  const check = new OptionChecker('explain');
  if (!Array.isArray(handlers))
    check.problem(`it takes a runtime or a list of handlers, got ${describeValue(handlers)}`);
  if (!check.object('options', options)) return check.problems;
  check.unknownOptions(options, ['namespace', 'topics', 'redelivery', 'attemptStore']);
  const { namespace, topics, redelivery } = options;
  const badNamespace = namespace === undefined ? undefined : namespaceProblem(namespace);
  if (badNamespace !== undefined) check.problem(badNamespace);
  check.function('topics', topics);
  checkRedeliveryPolicy(redelivery, check);
  return check.problems;
}
