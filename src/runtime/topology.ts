// What is connected to what, known without running anything: for documents, diagrams and checks.
import type { SubscriptionType } from '../core/subscription-spec.js';
import type { HandlerPlan } from './handler-plan.js';

export interface TopologyEntry {
  readonly handler: string;
  readonly subscription: string;
  readonly type: SubscriptionType;
  /** Full names of the topics it takes from, or its pattern. */
  readonly from: readonly string[];
  /** Full names of the topics it may send to; undefined when it did not declare them. */
  readonly to: readonly string[] | undefined;
  /** Full names of its retry letter topics. */
  readonly retryLetters: readonly string[];
  /** Full names of its dead letter topics; of a pattern, with `<topic>` for the name of each. */
  readonly deadLetters: readonly string[];
}

export function topologyOf(plans: readonly HandlerPlan[]): readonly TopologyEntry[] {
  return plans.map(({ name, spec, publishes, deadLetterTopic, retry }) => ({
    handler: name,
    subscription: spec.subscription,
    type: spec.type,
    from: spec.pattern === undefined ? spec.topics : [String(spec.pattern)],
    to: publishes && [...publishes],
    retryLetters: retry?.spec.topics ?? [],
    deadLetters: deadLetterTopics(spec, deadLetterTopic),
  }));
}

/** Where a pattern says nothing about names yet, one name stands for all. */
function deadLetterTopics(
  { topics, pattern }: HandlerPlan['spec'],
  deadLetterTopic: HandlerPlan['deadLetterTopic'],
): readonly string[] {
  return [...new Set((pattern === undefined ? topics : ['<topic>']).map(deadLetterTopic))];
}
