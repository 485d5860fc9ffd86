// What may go wrong on purpose in an embedded broker, how often and for whom; and what is wrong with such a wish.
import { describeValue } from '../core/errors.js';
import { MAX_DURATION_MS, OptionChecker, seconds } from '../core/options.js';

/** Whole milliseconds, up to 100 years, or a range of which each occasion draws one, both ends included. */
export type FaultTime = number | readonly [minMs: number, maxMs: number];

/** How often. A number in place of the object is its `probability`. */
export interface FaultRule {
  /** Of each occasion, 0 to 1. @default 1 */
  readonly probability?: number | undefined;
  /** At most so many times; with probability 1: the first ones. @default Infinity */
  readonly times?: number | undefined;
}

/** What is absent does not happen. A stored message is never lost: whatever is, comes again. */
export interface FaultOptions {
  /** Decides every draw: equal seeds and equal calls do the same. @default 1 */
  readonly seed?: number | undefined;
  /** Short or full names; a partitioned topic stands for its partitions. @default all, letter topics included */
  readonly topics?: readonly string[] | undefined;
  /** Whose consumers are hit; publishes are of no subscription. @default all */
  readonly subscriptions?: readonly string[] | undefined;
  /**
   * A delivery is lost on its way, and so is what follows it over the same connection, which looks alive until it is given
   * up after `silentMs`: then everything unacknowledged comes again, uncounted.
   * @default silentMs 30 s, the keep-alive interval of Pulsar
   */
  readonly drop?: number | (FaultRule & { readonly silentMs?: FaultTime | undefined }) | undefined;
  /** A delivery takes `ms` longer; what follows over the same connection waits behind it. @default ms 1 to 1,000 */
  readonly delay?: number | (FaultRule & { readonly ms?: FaultTime | undefined }) | undefined;
  /**
   * A message comes a second time without being asked for, as after a broker that died before it kept an acknowledgement:
   * uncounted, `afterMs` after the first arrival, acknowledged or not. A runtime knows a message again for its
   * `duplicateWindowMs`; later copies are handled again. @default afterMs 0
   */
  readonly duplicate?: number | (FaultRule & { readonly afterMs?: FaultTime | undefined }) | undefined;
  /** The connection ends right after a delivery: everything unacknowledged comes again, uncounted. */
  readonly disconnect?: number | FaultRule | undefined;
  /**
   * A publish of a transport fails with CONNECTION_LOST, before the message was stored or after; one by `broker.publish`
   * itself, the test's own, does not. @default stored either, evenly
   */
  readonly failPublish?: number | (FaultRule & { readonly stored?: boolean | undefined }) | undefined;
  /** The receipt of an acknowledgement comes `ms` late; CONNECTION_LOST if its connection ends before. @default ms 1 to 1,000 */
  readonly slowAcknowledge?: number | (FaultRule & { readonly ms?: FaultTime | undefined }) | undefined;
}

export const FAULT_NAMES = ['drop', 'delay', 'duplicate', 'disconnect', 'failPublish', 'slowAcknowledge'] as const;
export type FaultName = (typeof FAULT_NAMES)[number];

export interface ResolvedFault {
  readonly probability: number;
  readonly times: number;
  /** The silence, the delay, or the time until the copy. */
  readonly ms: readonly [number, number];
  /** Of `failPublish`; undefined: either. */
  readonly stored: boolean | undefined;
}

export interface ResolvedFaults {
  readonly seed: number;
  readonly topics: readonly string[] | undefined;
  readonly subscriptions: readonly string[] | undefined;
  readonly faults: ReadonlyMap<FaultName, ResolvedFault>;
}

/** Under which name each fault has its time, and what it is without one. */
const TIMES: Readonly<Partial<Record<FaultName, { readonly name: string; readonly ms: readonly [number, number] }>>> = {
  drop: { name: 'silentMs', ms: [seconds(30), seconds(30)] },
  delay: { name: 'ms', ms: [1, seconds(1)] },
  duplicate: { name: 'afterMs', ms: [0, 0] },
  slowAcknowledge: { name: 'ms', ms: [1, seconds(1)] },
};

/** @throws ConfigurationError listing every problem. */
export function resolveFaults(options: FaultOptions): ResolvedFaults {
  const check = new OptionChecker('inject');
  const faults = new Map<FaultName, ResolvedFault>();
  if (check.object('options', options, '{ drop: 0.01 }')) {
    check.unknownOptions(options, ['seed', 'topics', 'subscriptions', ...FAULT_NAMES]);
    const { seed } = options;
    if (seed !== undefined && !Number.isSafeInteger(seed))
      check.problem(`"seed" must be a whole number, got ${describeValue(seed)}`);
    for (const name of ['topics', 'subscriptions']) checkNames(name, options[name], check);
    for (const name of FAULT_NAMES) {
      const fault = options[name] === undefined ? undefined : resolveFault(name, options[name], check);
      if (fault !== undefined) faults.set(name, fault);
    }
    if (FAULT_NAMES.every((name) => options[name] === undefined))
      check.problem(`nothing is to go wrong: give one of ${FAULT_NAMES.join(', ')}`);
  }
  check.throwIfAny();
  const { seed = 1, topics, subscriptions } = options;
  return { seed, topics, subscriptions, faults };
}

function resolveFault(name: FaultName, given: unknown, check: OptionChecker): ResolvedFault | undefined {
  const time = TIMES[name];
  const rule = typeof given === 'number' ? { probability: given } : given;
  if (!check.object(name, rule, 'a probability or { probability, times }')) return undefined;
  const { probability = 1, times = Infinity, stored } = rule;
  const known = ['probability', 'times'];
  if (time !== undefined) known.push(time.name);
  if (name === 'failPublish') known.push('stored');
  check.unknownOptions(rule, known, `${name}.`);
  if (typeof probability !== 'number' || !(probability >= 0 && probability <= 1))
    check.problem(`"${name}.probability" must be a number from 0 to 1, got ${describeValue(probability)}`);
  if (times !== Infinity) check.positiveInteger(`${name}.times`, times);
  check.boolean(`${name}.stored`, stored);
  return { probability, times, stored, ms: timeOf(name, rule, check) } as ResolvedFault;
}

function timeOf(name: FaultName, rule: Record<string, unknown>, check: OptionChecker): readonly [number, number] {
  const time = TIMES[name];
  if (time === undefined) return [0, 0];
  const ms = rangeOf(rule[time.name] ?? time.ms);
  if (ms === undefined) check.problem(`"${name}.${time.name}" must be whole milliseconds, or [least, most] of them`);
  return ms ?? time.ms;
}

function rangeOf(value: unknown): readonly [number, number] | undefined {
  const [least, most, ...rest] = (Array.isArray(value) ? value : [value, value]) as readonly unknown[];
  if (!isWhole(least) || !isWhole(most) || rest.length > 0) return undefined;
  return least >= 0 && least <= most && most <= MAX_DURATION_MS ? [least, most] : undefined;
}

/** What is drawn is whole: of a range between fractions it could lie outside. */
function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function checkNames(name: string, value: unknown, check: OptionChecker): void {
  if (value === undefined) return;
  const isName = (item: unknown): boolean => typeof item === 'string' && item.trim() !== '';
  if (Array.isArray(value) && value.length > 0 && value.every(isName)) return;
  check.problem(`"${name}" must be a list of at least one name, got ${describeValue(value)}`);
}
