// What a test may give to `testRuntime`, and what is wrong with it: all of it at once, together with what `Runtime.start`
// says of the rest.
import { ConfigurationError, describeValue, toError } from '../core/errors.js';
import { OptionChecker, withoutAbsent } from '../core/options.js';
import { takesFrom } from '../core/topic-pattern.js';
import type { HandlerPlan } from '../runtime/handler-plan.js';
import type { RuntimeOptions } from '../runtime/runtime-options.js';
import { RUNTIME_OPTION_NAMES } from '../runtime/runtime-options.js';
import type { StartPlan } from '../runtime/start-checks.js';
import { planStart } from '../runtime/start-checks.js';

/** Those of `Runtime.start` without a transport and a clock. Without a `logger` nothing is logged; `random` gives 0.5. */
export interface TestRuntimeOptions extends Omit<RuntimeOptions, 'transport' | 'clock'> {
  /**
   * How many partitions topics have, by name: topics that handlers take from, or say that they publish to. Others are made by
   * `kit.broker.createPartitionedTopic`. @default none
   */
  readonly partitions?: Readonly<Record<string, number>> | undefined;
}

/** Options of `Runtime.start` that a test must not give. */
const KIT_OWNS: readonly string[] = ['transport', 'clock'];

export interface TestStart extends StartPlan {
  readonly runtimeOptions: RuntimeOptions;
  /** By full name. */
  readonly partitions: ReadonlyMap<string, number>;
}

/**
 * @param kit what the kit adds: a transport, defaults, and its plugin, which comes last.
 * @throws ConfigurationError with every problem found.
 */
export function planTest(given: unknown, kit: Omit<RuntimeOptions, 'handlers' | 'plugins'>, plugin: object): TestStart {
  const check = new OptionChecker('testRuntime');
  const options = givenOptions(given, check);
  const known = RUNTIME_OPTION_NAMES.filter((name) => !KIT_OWNS.includes(name));
  check.unknownOptions(options, [...known, 'partitions', ...KIT_OWNS], '', [...known, 'partitions']);
  for (const name of KIT_OWNS)
    if (options[name] !== undefined) check.problem(`"${name}" is the kit's own; leave it out`);
  const own = Object.fromEntries(known.map((name) => [name, options[name]]));
  const plugins = withPlugin(own['plugins'], plugin);
  const runtimeOptions = { ...kit, ...withoutAbsent(own), plugins } as RuntimeOptions;
  const plan = planned(runtimeOptions, check);
  const partitions = resolvedPartitions(options['partitions'], plan, check);
  if (plan === undefined || check.problems.length > 0) throw new ConfigurationError(check.problems);
  return { ...plan, runtimeOptions, partitions };
}

/** @throws ConfigurationError for what has no options to look at. */
function givenOptions(given: unknown, check: OptionChecker): Readonly<Record<string, unknown>> {
  if (Array.isArray(given)) return { handlers: given };
  if (typeof given !== 'object' || given === null)
    check.problem(`it takes a list of handlers, or options with one, got ${describeValue(given)}`);
  else if ('handle' in given) check.problem('it takes a list of handlers, got one handler; put it in brackets');
  check.throwIfAny();
  return given as Readonly<Record<string, unknown>>;
}

/** What is no list is left for the start to refuse. */
function withPlugin(plugins: unknown, plugin: object): unknown {
  const given = plugins ?? [];
  return Array.isArray(given) ? [...(given as readonly unknown[]), plugin] : given;
}

/** Undefined where the start refuses it; its problems are added. */
function planned(options: RuntimeOptions, check: OptionChecker): StartPlan | undefined {
  try {
    return planStart(options);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    check.problems.push(...error.problems);
    return undefined;
  }
}

function resolvedPartitions(
  given: unknown,
  plan: StartPlan | undefined,
  check: OptionChecker,
): ReadonlyMap<string, number> {
  const partitions = new Map<string, number>();
  if (given === undefined || !check.object('partitions', given, '{ orders: 3 }')) return partitions;
  for (const [name, count] of Object.entries(given)) {
    check.positiveInteger(`partitions.${name}`, count ?? null);
    if (plan === undefined) continue;
    const full = fullNameOf(name, plan, check);
    if (full === undefined) continue;
    if (partitions.has(full)) check.problem(`"partitions.${name}": topic ${full} is there twice`);
    else if (!plan.plans.some((handler) => knows(handler, full))) check.problem(unread(name, full, plan.plans));
    partitions.set(full, count as number);
  }
  return partitions;
}

function fullNameOf(name: string, { fullName }: StartPlan, check: OptionChecker): string | undefined {
  try {
    return fullName(name);
  } catch (error) {
    check.problem(`"partitions.${name}": ${toError(error).message}`);
    return undefined;
  }
}

function knows({ spec, retry, publishes }: HandlerPlan, topic: string): boolean {
  if (takesFrom(spec, topic) || publishes?.has(topic) === true) return true;
  return retry !== undefined && takesFrom(retry.spec, topic);
}

function unread(name: string, topic: string, plans: readonly HandlerPlan[]): string {
  const sources = plans.flatMap(({ spec }) => (spec.pattern === undefined ? spec.topics : [String(spec.pattern)]));
  const listened = [...new Set(sources)].join(', ');
  return `"partitions.${name}": no handler takes from ${topic}, or says that it publishes there; handlers listen to ${listened}`;
}
