// A definition as the machine uses it: checked, its instance made.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { toError } from '../core/errors.js';
import { issuesText } from '../runtime/payload.js';
import type { WorkflowMethod, WorkflowOptions } from './definition.js';
import type { MethodWatch } from './determinism.js';

export interface PlannedWorkflow {
  readonly name: string;
  readonly options: WorkflowOptions;
  readonly run: WorkflowMethod<never, unknown>;
  /** Undefined where nobody watches the method. */
  readonly watch?: MethodWatch | undefined;
}

export type Checked = { readonly value: unknown } | { readonly problem: string };

/** The value as the schema gives it, or what is wrong with it. Without a schema everything is right. */
export async function checkedValue(schema: StandardSchemaV1 | undefined, value: unknown): Promise<Checked> {
  if (schema === undefined) return { value };
  try {
    const result = await schema['~standard'].validate(value);
    return result.issues === undefined ? { value: result.value } : { problem: issuesText(result.issues) };
  } catch (error) {
    return { problem: `the schema threw: ${toError(error).message}` };
  }
}
