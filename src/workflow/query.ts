// Looking at a workflow by running its method over what is recorded. Nothing is done: what the method asks for is left undone.
import { toError } from '../core/errors.js';
import type { WorkflowKey } from '../ports/workflow-store.js';
import { Execution } from './execution.js';
import { plainValue } from './plain-value.js';
import { checkedValue } from './planned-workflow.js';
import { WorkflowError, keyOf } from './workflow-errors.js';
import type { WorkflowMachine } from './workflow-machine.js';

export async function answerOf(machine: WorkflowMachine, key: WorkflowKey, name: string): Promise<unknown> {
  const snapshot = await machine.store('reading a workflow', (store) => store.read(key));
  const about = { workflow: key };
  if (snapshot === undefined)
    throw new WorkflowError('WORKFLOW_NOT_FOUND', `there is no workflow ${keyOf(key)}`, about);
  const workflow = machine.workflowFor(snapshot.record);
  if (workflow === undefined) {
    const message = `no definition of workflow ${JSON.stringify(key.name)} version ${snapshot.record.version} is here`;
    throw new WorkflowError('WORKFLOW_NOT_FOUND', message, about);
  }
  const execution = new Execution(workflow, snapshot.record, () => machine.turn());
  await execution.replay(snapshot.journal);
  if (execution.problem !== undefined) throw execution.problem;
  const answer = execution.queries.get(name);
  if (answer === undefined) {
    const known = [...execution.queries.keys()].join(', ') || 'none';
    const message = `workflow ${keyOf(key)} answers no query ${JSON.stringify(name)}; it has ${known}`;
    throw new WorkflowError('WORKFLOW_NOT_FOUND', message, about);
  }
  let value: unknown;
  try {
    value = plainValue(await answer(), 'it');
  } catch (error) {
    const message = `query ${JSON.stringify(name)} of workflow ${keyOf(key)} cannot be answered: ${toError(error).message}`;
    throw new WorkflowError('WORKFLOW_VALUE_INVALID', message, { ...about, cause: error });
  }
  const checked = await checkedValue(workflow.options.queries?.[name], value);
  if ('value' in checked) return checked.value;
  const message = `query ${JSON.stringify(name)} of workflow ${keyOf(key)} does not match its schema: ${checked.problem}`;
  throw new WorkflowError('WORKFLOW_VALUE_INVALID', message, about);
}
