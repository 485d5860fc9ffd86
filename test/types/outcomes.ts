// Compile-time promises of outcomes: a closed, branded union, and rules that infer the error they map.
/* oxlint-disable typescript/no-unsafe-argument -- some types are wrong on purpose */
import { defer, dependencyDown, fatal, on, poison, retry, retryAfter, skip, success } from 'pulsework';
import type { ErrorRule, Outcome } from 'pulsework';
import { expectTypeOf } from 'vitest';
import { orders } from './topics.js';

export const outcomes: readonly Outcome[] = [
  success(),
  success(orders.message({ id: 'A-1', cents: '995' })),
  skip('not mine'),
  retry(),
  retry('busy'),
  retry(new Error('busy')),
  retryAfter(1_000),
  retryAfter(1_000, new Error('busy')),
  defer(1_000),
  defer(new Date(), 'too early'),
  poison('broken'),
  poison(new Error('broken')),
  dependencyDown('bank'),
  dependencyDown('bank', { retryAfterMs: 1_000 }),
  fatal('out of disk'),
];

// Only the functions above make outcomes.
// @ts-expect-error an object that looks like one
export const lookAlikeSuccess: Outcome = { kind: 'success', messages: [] };
// @ts-expect-error an object that looks like one
export const lookAlikePoison: Outcome = { kind: 'poison', failure: { reason: 'broken' }, cause: 'poison' };
// @ts-expect-error a word is not an outcome
export const word: Outcome = 'success';

// @ts-expect-error a payload is not a message: topic.message(...) makes one
success({ id: 'A-1', cents: '995' });
// @ts-expect-error a dead letter needs a reason
poison();
// @ts-expect-error a reason is a text or an Error
poison({ message: 'broken' });
// @ts-expect-error skipping needs a reason
skip();
// @ts-expect-error when is not optional
retryAfter('soon');
// @ts-expect-error when is not optional
defer();
// @ts-expect-error unknown option
dependencyDown('bank', { retryAfter: 1_000 });

// `kind` tells the outcomes apart, and all of them are known.
export function describe(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'success':
      return `${outcome.messages.length} messages`;
    case 'retry-after':
      return `in ${outcome.delayMs} ms`;
    case 'dependency-down':
      return outcome.dependency;
    case 'skip':
    case 'retry':
    case 'defer':
    case 'poison':
    case 'fatal':
      return outcome.failure.reason;
    default:
      expectTypeOf(outcome).toEqualTypeOf<never>();
      return '';
  }
}

// on(): the error's type follows from the class.
class GatewayBusy extends Error {
  readonly retryAfterMs: number = 500;
}
abstract class PaymentError extends Error {
  abstract readonly code: string;
}
class CardDeclined extends PaymentError {
  readonly code: string;
  constructor(code: string, options: { readonly cause: unknown }) {
    super(code, options);
    this.code = code;
  }
}

export const rules: readonly ErrorRule[] = [
  on(CardDeclined, poison),
  on(Error, retry),
  on(GatewayBusy, (error) => {
    expectTypeOf(error).toEqualTypeOf<GatewayBusy>();
    return retryAfter(error.retryAfterMs, error);
  }),
  on(PaymentError, (error) => poison(error.code)),
  on(RangeError, () => skip('out of range')),
];

// @ts-expect-error the error has no such field
on(GatewayBusy, (error) => retryAfter(error.retryAfter));
// @ts-expect-error the rule gives nothing
on(GatewayBusy, () => undefined);
// @ts-expect-error the rule may give nothing
on(GatewayBusy, (error) => (error.retryAfterMs > 0 ? retry(error) : undefined));
// @ts-expect-error a rule cannot wait
on(GatewayBusy, async (error) => retry(error));
// @ts-expect-error a rule gives an outcome, not an object that looks like one
on(GatewayBusy, () => ({ kind: 'success', messages: [] }));
// @ts-expect-error the rule is for another error
on(GatewayBusy, (error: CardDeclined) => poison(error.code));
// @ts-expect-error not a class of errors
on(Date, () => retry());
