// What a handler returned or threw, as one Outcome: error classes by `onError`, then by `outage`, then `retry`. Whatever is
// wrong with an outcome is a failed run that says so.
import { PulseworkError, containRejection, describeValue, toError } from '../core/errors.js';
import type { Outcome } from '../core/outcome.js';
import { dependencyDown, isOutcome, outcomeProblem, retry } from '../core/outcome.js';
import type { HandlerPlan } from './handler-plan.js';

export class OutcomeRules {
  readonly #plan: Pick<HandlerPlan, 'name' | 'ordering' | 'onError' | 'outage'>;

  constructor(plan: Pick<HandlerPlan, 'name' | 'ordering' | 'onError' | 'outage'>) {
    this.#plan = plan;
  }

  /** Of what a handler returned. */
  ofResult(result: unknown): Outcome {
    const problem = this.#problemOf(result);
    if (problem === undefined) return result as Outcome;
    return retry(
      new PulseworkError('HANDLER_RETURNED_NO_OUTCOME', `handler ${JSON.stringify(this.#plan.name)}${problem}`),
    );
  }

  /** Of what a handler threw: the first rule that matches decides, without one it is a retry. */
  ofError(thrown: unknown): Outcome {
    const error = toError(thrown);
    return this.ruled(error) ?? retry(error);
  }

  /** What the first rule that matches makes of an error; undefined without one. */
  ruled(error: Error): Outcome | undefined {
    try {
      const rule = this.#plan.onError.find(({ errorClass }) => error instanceof errorClass);
      if (rule === undefined) return this.#outageOf(error);
      const outcome: unknown = rule.outcome(error as never);
      if (this.#problemOf(outcome) === undefined) return outcome as Outcome;
      containRejection(outcome);
      const message = `the onError rule for ${rule.errorClass.name} must return an outcome, got ${describeValue(outcome)}`;
      return ruleFailed(message, error);
    } catch (ruleError) {
      return ruleFailed(`an onError rule threw: ${toError(ruleError).message}`, error);
    }
  }

  /**
   * Of what `run` returns, throws or rejects with.
   * @param isCutShort whether the run was told to end: then its error says only that, and no rule is for it.
   */
  async of(run: () => unknown, isCutShort: () => boolean): Promise<Outcome> {
    try {
      return this.ofResult(await run());
    } catch (error) {
      return isCutShort() ? retry(toError(error)) : this.ofError(error);
    }
  }

  #outageOf(error: Error): Outcome | undefined {
    const rule = this.#plan.outage.find(({ errors }) => errors.some((errorClass) => error instanceof errorClass));
    if (rule === undefined) return undefined;
    return dependencyDown(rule.dependency, { retryAfterMs: rule.retryAfterMs, reason: error });
  }

  /** What is wrong with a value as an outcome of this handler, to follow its name. */
  #problemOf(value: unknown): string | undefined {
    if (!isOutcome(value)) return ` must return an outcome such as success(), got ${describeValue(value)}`;
    const problem = outcomeProblem(value) ?? this.#scopeProblem(value);
    return problem === undefined ? undefined : `: ${problem}`;
  }

  #scopeProblem(outcome: Outcome): string | undefined {
    if (outcome.kind !== 'dependency-down' || outcome.scope === 'subscription' || this.#plan.ordering !== 'none')
      return undefined;
    return 'dependencyDown() with "scope: key" needs "ordering": without it nothing of the key would wait';
  }
}

function ruleFailed(message: string, cause: Error): Outcome {
  return retry(new PulseworkError('POLICY_FAILED', message, { cause }));
}
