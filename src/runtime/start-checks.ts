// Everything that can be wrong before anything is opened: options, classes, handlers, plugins. All problems of all
// of them are thrown as one ConfigurationError.
import { ConfigurationError } from '../core/errors.js';
import type { HandlerDefinition } from '../core/handler-definition.js';
import { OptionChecker } from '../core/options.js';
import type { Plugin } from '../ports/plugin.js';
import type { Transport } from '../ports/transport.js';
import { handlerProblems } from './handler-checks.js';
import type { ClassHandlers } from './handler-classes.js';
import { readHandlerClass } from './handler-classes.js';
import type { HandlerPlan, PlanContext } from './handler-plan.js';
import { planHandler, topicResolver } from './handler-plan.js';
import { checkConflicts, checkLetterLoops, checkNames, checkPatternConflicts } from './plan-conflicts.js';
import { orderPlugins } from './plugin-order.js';
import type { ResolvedRuntimeOptions, RuntimeOptions } from './runtime-options.js';
import { resolveRuntimeOptions, runtimeOptionProblems } from './runtime-options.js';

/** What a start needs, all of it checked. */
export interface StartPlan {
  readonly options: ResolvedRuntimeOptions;
  readonly plans: readonly HandlerPlan[];
  readonly classes: readonly ClassHandlers[];
  readonly plugins: readonly Plugin[];
  readonly fullName: (name: string) => string;
  /** What handlers are planned with that come later. */
  readonly context: HandlersContext;
}

/** @throws ConfigurationError with every problem found. */
export function planStart(given: RuntimeOptions): StartPlan {
  const ownProblems = runtimeOptionProblems(given);
  if (typeof (given as unknown) !== 'object' || (given as unknown) === null) throw new ConfigurationError(ownProblems);
  const { handlers, transport, plugins = [], topics } = given as Partial<RuntimeOptions>;
  // With these unusable there is nothing to check handlers and plugins with.
  const usable =
    Array.isArray(handlers) &&
    Array.isArray(plugins) &&
    typeof transport === 'object' &&
    (transport as unknown) !== null;
  if (!usable || (topics !== undefined && typeof topics !== 'function')) throw new ConfigurationError(ownProblems);
  const options = resolveRuntimeOptions(given);
  const problems = [...ownProblems];
  const fullName = topicResolver(options.topics, options.namespace);
  const { environment, redelivery } = options;
  const suffix = Math.floor(environment.random() * 0x7fffffff).toString(36);
  const consumerName = (handler: string): string => `${handler}@${environment.host}:${environment.processId}-${suffix}`;
  const hasResolver = given.resolve !== undefined;
  const { namespace } = options;
  const context = { fullName, namespace, redelivery, transport, consumerName, hasResolver };
  const { plans, classes, problems: handlersProblems } = planHandlers(handlers, context);
  problems.push(...handlersProblems);
  const { ordered, problems: pluginProblems } = orderPlugins(options.plugins);
  problems.push(...pluginProblems);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { options, plans, classes, plugins: ordered, fullName, context };
}

/**
 * A plan with more handlers, made by `defineHandler`. @throws ConfigurationError with every problem of theirs, also together
 * with those that are there.
 */
export function planMore(
  plan: StartPlan,
  handlers: RuntimeOptions['handlers'],
): { readonly plan: StartPlan; readonly added: readonly HandlerPlan[] } {
  const { plans: added, problems } = planHandlers(handlers, plan.context);
  const plans = [...plan.plans, ...added];
  const all = [...problems, ...problemsTogether(plans)];
  if (all.length > 0) throw new ConfigurationError([...new Set(all)]);
  return { plan: { ...plan, plans }, added };
}

/** What handlers are planned with; `PlanContext` says what for. */
export interface HandlersContext extends Omit<PlanContext, 'capabilities'> {
  readonly transport: Pick<Transport, 'name' | 'capabilities'>;
  /** Whether somebody else makes the instances of classes. */
  readonly hasResolver: boolean;
}

/** The plans of all handlers that nothing is wrong with, and what is wrong with the others. */
export function planHandlers(
  handlers: RuntimeOptions['handlers'],
  { transport, hasResolver, ...context }: HandlersContext,
): Pick<StartPlan, 'plans' | 'classes'> & { readonly problems: readonly string[] } {
  const problems: string[] = [];
  const { definitions, classes } = collectHandlers(handlers, hasResolver, problems);
  const methods = new Set(classes.flatMap((handlers) => handlers.definitions));
  const plans: HandlerPlan[] = [];
  for (const definition of definitions) {
    const place = methods.has(definition) ? 'method' : 'function';
    const own = handlerProblems(definition, { place, ...context, transport });
    problems.push(...own);
    // One with problems has no plan; the others are still checked against each other.
    if (own.length === 0) plans.push(planHandler(definition, { ...context, capabilities: transport.capabilities }));
  }
  problems.push(...problemsTogether(plans));
  return { plans, classes, problems };
}

function collectHandlers(
  handlers: RuntimeOptions['handlers'],
  hasResolver: boolean,
  problems: string[],
): { definitions: HandlerDefinition[]; classes: ClassHandlers[] } {
  const definitions: HandlerDefinition[] = [];
  const classes: ClassHandlers[] = [];
  for (const [at, handler] of handlers.entries()) {
    if (isDefinition(handler)) {
      definitions.push(handler);
      continue;
    }
    const read = readHandlerClass(handler, hasResolver, at);
    problems.push(...read.problems);
    if (read.handlers === undefined) continue;
    classes.push(read.handlers);
    definitions.push(...read.handlers.definitions);
  }
  return { definitions, classes };
}

function problemsTogether(plans: readonly HandlerPlan[]): readonly string[] {
  const check = new OptionChecker();
  checkNames(plans, check);
  checkConflicts(plans, check);
  checkPatternConflicts(plans, check);
  for (const plan of plans) {
    const own = new OptionChecker(`handler ${JSON.stringify(plan.name)}`);
    checkLetterLoops(plan, own);
    check.problems.push(...own.problems);
  }
  return check.problems;
}

function isDefinition(handler: unknown): handler is HandlerDefinition {
  return typeof handler === 'object' && handler !== null && (handler as { kind?: unknown }).kind === 'handler';
}
