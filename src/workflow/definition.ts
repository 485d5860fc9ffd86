// What a workflow is: a name, a version, schemas and a method. `@Workflow` and `defineWorkflow` both end here; nothing is
// checked before `Workflows.start`, where all problems of all definitions are reported together.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { OptionChecker } from '../core/options.js';
import type { Flow } from './flow.js';

export interface WorkflowOptions<
  I extends StandardSchemaV1 = StandardSchemaV1,
  R extends StandardSchemaV1 = StandardSchemaV1,
> {
  /** A positive integer. A workflow goes on under the version that it began with; new ones begin with the highest. */
  readonly version: number;
  readonly input: I;
  /** Of what the method returns. @default unchecked */
  readonly result?: R | undefined;
  /** By name: what is accepted from outside. Others are refused. @default any name, unchecked */
  readonly signals?: Readonly<Record<string, StandardSchemaV1>> | undefined;
  /** By name: what the method's `flow.query` answers. @default any name, unchecked */
  readonly queries?: Readonly<Record<string, StandardSchemaV1>> | undefined;
}

export const WORKFLOW_OPTION_NAMES = [
  'version',
  'input',
  'result',
  'signals',
  'queries',
] as const satisfies readonly (keyof WorkflowOptions)[];

/** The method of a workflow. `Result` is what it must return, before the schema of `result` has seen it. */
export type WorkflowMethod<Input, Result> = (flow: Flow, input: Input) => Promise<Result>;

/** A workflow as `Workflows` takes it. `In` is what starts give, `Out` what `result()` gives. */
export interface WorkflowDefinition<In = unknown, Out = unknown> {
  readonly kind: 'workflow';
  readonly name: string;
  readonly options: WorkflowOptions;
  readonly run: WorkflowMethod<never, unknown>;
  /** Only in the compiler's eyes. */
  readonly types?: { readonly input: In; readonly result: Out } | undefined;
}

/** Declares a workflow without decorators. */
export function defineWorkflow<I extends StandardSchemaV1, R extends StandardSchemaV1 = StandardSchemaV1>(
  options: WorkflowOptions<I, R> & {
    readonly name: string;
    readonly run: WorkflowMethod<StandardSchemaV1.InferOutput<I>, StandardSchemaV1.InferInput<R>>;
  },
): WorkflowDefinition<StandardSchemaV1.InferInput<I>, StandardSchemaV1.InferOutput<R>> {
  const check = new OptionChecker('defineWorkflow');
  check.object('options', options, '{ name, version, input, run }');
  check.throwIfAny();
  const { name, run, ...rest } = options;
  return { kind: 'workflow', name, options: rest, run };
}

/** Where `@Workflow` leaves what it was given. `Workflows` reads nothing else of a class. */
export const WORKFLOW_CLASS: unique symbol = Symbol.for('pulsework.workflow-class') as never;

export interface WorkflowClassRecord {
  readonly name: string;
  readonly options: WorkflowOptions;
}

/** A class with a method `run`. */
export type WorkflowClass<Input = never, Result = unknown> = abstract new (...args: never[]) => {
  run(flow: Flow, input: Input): Promise<Result>;
};

/**
 * Marks a class for `Workflows.start({ definitions: [...] })`. Its method `run` takes what the schema of `input` gives and
 * returns what that of `result` takes. Needs `"experimentalDecorators": true` in tsconfig.json.
 */
export function Workflow<I extends StandardSchemaV1, R extends StandardSchemaV1 = StandardSchemaV1>(
  name: string,
  options: WorkflowOptions<I, R>,
): (workflowClass: WorkflowClass<StandardSchemaV1.InferOutput<I>, StandardSchemaV1.InferInput<R>>) => void {
  const record: WorkflowClassRecord = { name, options };
  return (workflowClass) =>
    void Object.defineProperty(workflowClass, WORKFLOW_CLASS, { value: record, configurable: true });
}

/** How a workflow is named in a call: by its definition, its class, or its name (then without types). */
export type WorkflowReference = string | WorkflowDefinition | WorkflowClass;

/** What the start of such a workflow takes. */
export type WorkflowInput<W> =
  W extends WorkflowDefinition<infer In>
    ? In
    : W extends abstract new (...args: never[]) => { run(flow: Flow, input: infer In): Promise<unknown> }
      ? In
      : unknown;

/** What such a workflow ends with. */
export type WorkflowResult<W> =
  W extends WorkflowDefinition<unknown, infer Out>
    ? Out
    : W extends abstract new (...args: never[]) => { run(flow: Flow, input: never): Promise<infer Out> }
      ? Out
      : unknown;

/** What a topic's name may hold, so that the events of the workflow have one. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;

export function isWorkflowName(name: unknown): name is string {
  return typeof name === 'string' && NAME.test(name);
}

/** @returns undefined for what is no way to name a workflow. */
export function referencedName(reference: unknown): string | undefined {
  if (typeof reference === 'string') return reference;
  if (isDefinition(reference)) return reference.name;
  return typeof reference === 'function' ? recordOf(reference)?.name : undefined;
}

export function isDefinition(value: unknown): value is WorkflowDefinition {
  return typeof value === 'object' && value !== null && (value as { kind?: unknown }).kind === 'workflow';
}

/** The class's own: a subclass is not a workflow by its parent's name. */
export function recordOf(workflowClass: object): WorkflowClassRecord | undefined {
  if (!Object.hasOwn(workflowClass, WORKFLOW_CLASS)) return undefined;
  return (workflowClass as { readonly [WORKFLOW_CLASS]?: WorkflowClassRecord })[WORKFLOW_CLASS];
}
