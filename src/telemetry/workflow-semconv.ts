// Names of attributes of workflows: the conventions have none for them. docs/observability.md lists them; a test compares the two.

export const WORKFLOW_NAME = 'pulsework.workflow.name';
export const WORKFLOW_ID = 'pulsework.workflow.id';
export const WORKFLOW_RUN = 'pulsework.workflow.run';
export const WORKFLOW_VERSION = 'pulsework.workflow.version';
export const WORKFLOW_STATUS = 'pulsework.workflow.status';
export const STEP_NAME = 'pulsework.step.name';
export const STEP_OUTCOME = 'pulsework.step.outcome';
