// What can be wrong with the rules of a handler: those for errors, outages and refused dead letters, what `idempotent` and `effects` are.
// Each sentence names the item of a list that it is about.
import { describeValue, isErrorClass } from '../core/errors.js';
import type { HandlerDefinition } from '../core/handler-definition.js';
import type { OptionChecker } from '../core/options.js';
import { isTopic } from '../core/topic.js';
import { Effects } from './effects.js';
import { Idempotency } from './idempotent.js';

export function checkRefusalRule(rule: unknown, check: OptionChecker): void {
  if (rule === undefined || rule === 'hold' || typeof rule === 'function') return;
  const { fallbackTopic, ...rest } = (typeof rule === 'object' && rule !== null ? rule : {}) as Record<string, unknown>;
  check.unknownOptions(rest, ['fallbackTopic'], 'onDeadLetterRefused.');
  if (typeof fallbackTopic === 'string' && fallbackTopic.trim() !== '') return;
  check.problem(`"onDeadLetterRefused" must be "hold", { fallbackTopic } or a function, got ${describeValue(rule)}`);
}

export function checkErrorRules(rules: unknown, check: OptionChecker): void {
  if (rules === undefined) return;
  if (!Array.isArray(rules))
    return check.problem(`"onError" must be a list of on(ErrorClass, outcome), got ${describeValue(rules)}`);
  for (const [at, rule] of (rules as readonly unknown[]).entries()) {
    const { errorClass, outcome } = (typeof rule === 'object' && rule !== null ? rule : {}) as Record<string, unknown>;
    if (isErrorClass(errorClass) && typeof outcome === 'function') continue;
    check.problem(`"onError" takes results of on(ErrorClass, outcome), item ${at} is ${describeValue(rule)}`);
  }
}

export function checkOutageRules(rules: unknown, check: OptionChecker): void {
  if (rules === undefined) return;
  if (!Array.isArray(rules))
    return check.problem(`"outage" must be a list of { dependency, errors }, got ${describeValue(rules)}`);
  for (const [at, rule] of (rules as readonly unknown[]).entries()) {
    const name = `outage[${at}]`;
    if (!check.object(name, rule, '{ dependency, errors }')) continue;
    check.required(rule, { dependency: 'the name of what may be down' }, `${name}.`);
    check.unknownOptions(rule, ['dependency', 'errors', 'retryAfterMs'], `${name}.`);
    check.nonEmptyString(`${name}.dependency`, rule['dependency']);
    check.durationMs(`${name}.retryAfterMs`, rule['retryAfterMs']);
    checkErrorClasses(`${name}.errors`, rule['errors'], check);
  }
}

function checkErrorClasses(name: string, classes: unknown, check: OptionChecker): void {
  if (classes === undefined) return;
  if (!Array.isArray(classes))
    return check.problem(`"${name}" must be a list of error classes, got ${describeValue(classes)}`);
  for (const [at, errorClass] of (classes as readonly unknown[]).entries()) {
    if (!isErrorClass(errorClass))
      check.problem(`"${name}" takes error classes, item ${at} is ${describeValue(errorClass)}`);
  }
}

export function checkIdempotency({ options, source }: HandlerDefinition, check: OptionChecker): void {
  const { idempotent } = options;
  if (idempotent === undefined) return;
  if (!(idempotent instanceof Idempotency))
    return check.problem(`"idempotent" must be made by idempotent(), got ${describeValue(idempotent)}`);
  checkMadeFor('idempotent', idempotent.topics, source, check);
}

export function checkEffects({ options, source, batch }: HandlerDefinition, check: OptionChecker): void {
  const { effects, idempotent, transactional = false } = options;
  if (effects === undefined) return;
  if (!(effects instanceof Effects))
    return check.problem(`"effects" must be made by effects(), got ${describeValue(effects)}`);
  if (idempotent !== undefined) check.problem('"effects" recognises repeats itself; leave "idempotent" out');
  if (transactional !== false)
    check.problem(
      '"effects" and "transactional" are two kinds of transactions; add messages to an outbox, or leave "effects" out',
    );
  if (batch !== undefined) check.problem('"effects" is a transaction for each message; leave "batch" out');
  checkMadeFor('effects', effects.topics, source, check);
}

/** Its key is written for payloads of certain topics: another source would give it others. */
function checkMadeFor(
  option: string,
  topics: readonly string[] | undefined,
  source: unknown,
  check: OptionChecker,
): void {
  if (topics === undefined) return;
  const others = namesOf(source).filter((name) => !topics.includes(name));
  if (others.length === 0) return;
  check.problem(`"${option}" was made for ${topics.join(', ')}, and the handler takes ${others.join(', ')} too`);
}

function namesOf(source: unknown): readonly string[] {
  if (isTopic(source)) return [source.name];
  if (Array.isArray(source)) return source.flatMap(namesOf);
  return [typeof source === 'string' ? source : 'a pattern'];
}
