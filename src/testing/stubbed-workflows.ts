// Options of `Workflows.start` whose steps are watched, and some of them replaced.
import type { Command } from '../workflow/command.js';
import type { StepContext } from '../workflow/flow.js';
import type { StepStubs, WorkflowsOptions } from '../workflow/workflows-options.js';
import { STEP_STUBS } from '../workflow/workflows-options.js';
import type { StepLedger } from './step-ledger.js';

export function stubbedOptions(
  options: WorkflowsOptions,
  stubs: Readonly<Record<string, (context: StepContext) => unknown>> = {},
  ledger: StepLedger,
): WorkflowsOptions {
  const workFor: StepStubs = ({ name, id }, command) => {
    const step = stepText(command);
    const own = Object.hasOwn(stubs, step) ? stubs[step] : undefined;
    // What a handler is to do is sent to it.
    const work = own ?? command.step?.run;
    if (work === undefined) return undefined;
    return (context) => {
      const { idempotencyKey, attempt } = context;
      ledger.ran({ workflow: name, id, step, attempt, idempotencyKey });
      return work(context);
    };
  };
  return { ...options, [STEP_STUBS]: workFor } as WorkflowsOptions;
}

function stepText({ kind, name }: Command): string {
  return kind === 'compensate' ? `undo ${name}` : name;
}
