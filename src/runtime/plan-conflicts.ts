// What is wrong between the plans of a runtime, or between the topics of one: names taken twice, subscriptions shared by
// chance, letters that come back to who wrote them.
import type { OptionChecker } from '../core/options.js';
import { sourceText } from '../core/subscription-spec.js';
import { takesFrom } from '../core/topic-pattern.js';
import type { HandlerPlan } from './handler-plan.js';

/** A name tells handlers apart in logs, on dead letters and in the ids of what they publish. */
export function checkNames(plans: readonly HandlerPlan[], check: OptionChecker): void {
  const names = plans.map(({ name }) => name);
  for (const name of new Set(names.filter((each, i) => names.indexOf(each) !== i))) {
    check.problem(`two handlers are named ${JSON.stringify(name)}; names must be unique`);
  }
}

/**
 * Two handlers on one topic and subscription would share its messages by chance, and two on one retry letter topic would each
 * run what the other one put there.
 */
export function checkConflicts(plans: readonly HandlerPlan[], check: OptionChecker): void {
  const taken = new Map<string, string>();
  const retried = new Map<string, string>();
  for (const { name, spec, retry } of plans) {
    for (const topic of retry?.spec.topics ?? []) {
      const other = retried.get(topic);
      if (other === undefined) retried.set(topic, name);
      else
        check.problem(
          `handlers ${JSON.stringify(other)} and ${JSON.stringify(name)} both use retry letter topic ${topic}; give each its own "retryTopic"`,
        );
    }
    for (const topic of new Set([...spec.topics, ...(retry?.spec.topics ?? [])])) {
      const key = `${topic} ${spec.subscription}`;
      const other = taken.get(key);
      if (other === undefined) taken.set(key, name);
      else check.problem(sharedSubscription(other, name, spec.subscription, topic));
    }
  }
}

/** Handlers that meet on topics which a pattern means. */
export function checkPatternConflicts(plans: readonly HandlerPlan[], check: OptionChecker): void {
  for (const [at, { name, spec }] of plans.entries()) {
    if (spec.pattern === undefined) continue;
    for (const [otherAt, other] of plans.entries()) {
      if (other.spec.subscription !== spec.subscription) continue;
      const samePattern = otherAt < at && String(other.spec.pattern) === String(spec.pattern);
      const shared =
        other.spec.topics.find((topic) => takesFrom(spec, topic)) ?? (samePattern ? sourceText(spec) : undefined);
      if (shared !== undefined) check.problem(sharedSubscription(other.name, name, spec.subscription, shared));
    }
  }
}

function sharedSubscription(one: string, other: string, subscription: string, source: string): string {
  const subject = `handlers ${JSON.stringify(one)} and ${JSON.stringify(other)}`;
  return `${subject} both use subscription ${JSON.stringify(subscription)} on ${source}; give one of them another subscription name`;
}

/** Where a plan would feed itself its own dead letters or retry letters. */
export function checkLetterLoops({ spec, retry, deadLetterTopic }: HandlerPlan, check: OptionChecker): void {
  const retryTopics = retry?.spec.topics ?? [];
  for (const topic of new Set(spec.topics.map(deadLetterTopic))) {
    if (spec.topics.includes(topic))
      check.problem(`its dead letter topic ${topic} is one of its own topics; failed messages would go round for ever`);
    if (retryTopics.includes(topic)) check.problem(`its dead letter topic ${topic} is its retry letter topic too`);
  }
  for (const topic of retryTopics) {
    if (spec.topics.includes(topic)) check.problem(`its retry letter topic ${topic} is one of its own topics`);
  }
}
