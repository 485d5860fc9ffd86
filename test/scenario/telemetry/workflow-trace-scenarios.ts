// What traces of workflows are taken of that need no time to pass: the same in virtual time and on a real broker.
import { defineHandler } from 'pulsework';
import type { Flow } from 'pulsework/workflow';
import { defineWorkflow, stepResult } from 'pulsework/workflow';
import { z } from 'zod';

export const defineJob = (name: string, run: (flow: Flow) => Promise<unknown>) =>
  defineWorkflow({ name, version: 1, input: z.null(), run: (flow) => run(flow) });

export const START = { id: '1', input: null };

const ship = defineJob('ship', (flow) => flow.step('pack', () => 'packed'));

const scales = defineHandler({
  name: 'Scales.weigh',
  source: 'weighings',
  subscription: 'scales',
  handle: (delivery) => stepResult(delivery, 7),
});

/** What the workflows below have around them. */
export const SURROUNDINGS = { definitions: [ship], handlers: [scales] };

/** Each is started and comes to its end by itself. By the name of the file with what is expected. */
export const PROMPT_WORKFLOWS: Readonly<Record<string, (flow: Flow) => Promise<unknown>>> = {
  child: (flow) => flow.child(ship, null),
  'step-of-a-handler': (flow) => flow.step('weigh', { topic: 'weighings', input: { id: flow.id } }),
};
