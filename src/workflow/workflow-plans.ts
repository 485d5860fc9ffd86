// From definitions and classes to planned workflows: all that is wrong with all of them is told at once, before anything is made.
import type { HandlerClass } from '../core/handler-definition.js';
import { ConfigurationError, PulseworkError, describeValue } from '../core/errors.js';
import { OptionChecker } from '../core/options.js';
import type { HandlerResolver } from '../runtime/handler-classes.js';
import { resolverOf } from '../runtime/handler-classes.js';
import type { WorkflowClass, WorkflowDefinition, WorkflowMethod, WorkflowOptions } from './definition.js';
import { WORKFLOW_OPTION_NAMES, isDefinition, isWorkflowName, recordOf } from './definition.js';
import type { PlannedWorkflow } from './planned-workflow.js';

/** A definition whose instance is not made yet. */
export interface UnboundWorkflow {
  readonly name: string;
  readonly options: WorkflowOptions;
  readonly run: WorkflowMethod<never, unknown> | undefined;
  readonly workflowClass: WorkflowClass | undefined;
}

export type GivenDefinition = WorkflowDefinition | WorkflowClass;

/** @throws nothing: what is wrong is put into `check` */
export function readDefinitions(
  given: unknown,
  hasResolver: boolean,
  check: OptionChecker,
): readonly UnboundWorkflow[] {
  if (!Array.isArray(given) || given.length === 0) {
    check.problem(`"definitions" must be a list of at least one workflow, got ${describeValue(given)}`);
    return [];
  }
  const read = given.flatMap((each: unknown, at) => readDefinition(each, at, hasResolver, check) ?? []);
  const places = read.map(({ name, options }) => `${JSON.stringify(name)} version ${options.version}`);
  for (const place of new Set(places.filter((each, i) => places.indexOf(each) !== i)))
    check.problem(`two definitions are of workflow ${place}; give one another version`);
  return read;
}

function readDefinition(
  given: unknown,
  at: number,
  hasResolver: boolean,
  check: OptionChecker,
): UnboundWorkflow | undefined {
  if (isDefinition(given)) return checked({ ...given, workflowClass: undefined }, check);
  if (typeof given !== 'function') {
    check.problem(
      `"definitions" takes classes with @Workflow and results of defineWorkflow(), item ${at} is ${describeValue(given)}`,
    );
    return undefined;
  }
  const record = recordOf(given);
  if (record === undefined) {
    check.problem(`class ${given.name}: it has no @Workflow(name, { version, input }) of its own`);
    return undefined;
  }
  if (given.length > 0 && !hasResolver)
    check.problem(
      `class ${given.name}: its constructor takes arguments; make it in "resolve", e.g. inversifyResolver(container)`,
    );
  const prototype = given.prototype as { readonly run?: unknown } | undefined;
  if (typeof prototype?.run !== 'function') check.problem(`class ${given.name}: it needs a method run(flow, input)`);
  return checked({ ...record, run: undefined, workflowClass: given as unknown as WorkflowClass }, check);
}

function checked(workflow: UnboundWorkflow, check: OptionChecker): UnboundWorkflow {
  const { name, options, run, workflowClass } = workflow;
  const own = new OptionChecker(`workflow ${JSON.stringify(name)}`);
  if (!isWorkflowName(name))
    own.problem(`its name must be letters, digits, ".", "_" and "-", got ${describeValue(name)}`);
  if (own.object('options', options, '{ version, input }')) {
    own.unknownOptions(options, WORKFLOW_OPTION_NAMES);
    own.required(options, { version: 'a positive integer', input: 'a Standard Schema (zod, valibot, arktype, ...)' });
    own.positiveInteger('version', options['version']);
    for (const field of ['input', 'result']) checkSchema(field, options[field], own);
    for (const field of ['signals', 'queries']) checkSchemas(field, options[field], own);
  }
  if (workflowClass === undefined) {
    own.required({ run }, { run: 'a function (flow, input)' });
    own.function('run', run);
  }
  check.problems.push(...own.problems);
  return workflow;
}

function checkSchemas(name: string, schemas: unknown, check: OptionChecker): void {
  if (schemas === undefined || !check.object(name, schemas, '{ name: schema }')) return;
  for (const [key, schema] of Object.entries(schemas)) checkSchema(`${name}.${key}`, schema, check);
}

export function checkSchema(name: string, schema: unknown, check: OptionChecker): void {
  const isSchema = (typeof schema === 'object' || typeof schema === 'function') && schema !== null;
  if (schema === undefined || (isSchema && '~standard' in schema)) return;
  check.problem(
    `${JSON.stringify(name)} must be a Standard Schema (zod, valibot, arktype, ...), got ${describeValue(schema)}`,
  );
}

/** The instances of classes, each made once. */
export interface BoundWorkflows {
  readonly workflows: readonly PlannedWorkflow[];
  close(): Promise<void>;
}

/** @throws PulseworkError START_FAILED, ConfigurationError: what the resolver throws */
export async function bindWorkflows(
  unbound: readonly UnboundWorkflow[],
  resolve: HandlerResolver | undefined,
): Promise<BoundWorkflows> {
  const resolver = resolverOf(resolve);
  const workflows: PlannedWorkflow[] = [];
  for (const { name, options, run, workflowClass } of unbound) {
    const method = workflowClass === undefined ? run : await methodOf(workflowClass, (c) => resolver.resolve(c));
    workflows.push({ name, options, run: method as WorkflowMethod<never, unknown> });
  }
  return { workflows, close: () => resolver.close() };
}

async function methodOf(
  workflowClass: WorkflowClass,
  resolve: (handlerClass: HandlerClass) => object | Promise<object>,
): Promise<WorkflowMethod<never, unknown>> {
  const { name } = workflowClass as unknown as { readonly name: string };
  let instance: { readonly run?: unknown };
  try {
    instance = await resolve(workflowClass);
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    throw new PulseworkError('START_FAILED', `workflow class ${name} could not be resolved`, { cause: error });
  }
  if (typeof (instance as unknown) !== 'object' || typeof instance.run !== 'function')
    throw new PulseworkError('START_FAILED', `workflow class ${name}: "resolve" gave no instance with a method run`);
  return instance.run.bind(instance) as WorkflowMethod<never, unknown>;
}
