// The handler of a workflow's events: it puts each into the inbox and says that it has happened, nothing else. No step runs here.
import { PulseworkError, isRefusedForGood, toError } from '../core/errors.js';
import type { Delivery } from '../core/delivery.js';
import type { HandlerDefinition } from '../core/handler-definition.js';
import { defineHandler } from '../core/handler-definition.js';
import { hours } from '../core/options.js';
import type { Outcome } from '../core/outcome.js';
import { dependencyDown, poison, success } from '../core/outcome.js';
import type { MessageProperties } from '../core/properties.js';
import type { WorkflowEvent, WorkflowKey } from '../ports/workflow-store.js';
import type { ActivationParts } from './activation-parts.js';
import type { EventMessage } from './event-message.js';
import { EVENT_SUBSCRIPTION, eventTopic, eventTopicName } from './event-message.js';
import type { PlannedWorkflow } from './planned-workflow.js';
import { checkedValue } from './planned-workflow.js';
import { keyOf } from './workflow-errors.js';

/** A signal may overtake the start that it is meant for by so much. */
export const EARLY_SIGNAL_MS = hours(24);

export interface EventHandlerParts extends Pick<
  ActivationParts,
  'store' | 'clock' | 'logger' | 'newSeed' | 'feed' | 'telemetry'
> {
  readonly storeName: string;
  /** Of that name, the newest first. */
  readonly versions: readonly PlannedWorkflow[];
  readonly onEvent: (key: WorkflowKey) => void;
}

export function eventHandler(name: string, parts: EventHandlerParts): HandlerDefinition {
  return defineHandler({
    name: eventTopicName(name),
    source: eventTopic(name),
    subscription: EVENT_SUBSCRIPTION,
    // What is sent to one workflow comes in the order in which it was sent.
    type: 'key-shared',
    ordering: 'key',
    handle: (delivery) => handled(name, delivery, parts),
  });
}

async function handled(
  name: string,
  { payload, properties }: Delivery<EventMessage>,
  parts: EventHandlerParts,
): Promise<Outcome> {
  const key = { name, id: payload.id };
  const problem = await problemOf(payload, parts.versions);
  if (problem !== undefined)
    return poison(new PulseworkError('WORKFLOW_VALUE_INVALID', `workflow ${keyOf(key)}: ${problem}`));
  const context = parts.telemetry.contextOf(properties);
  try {
    if (payload.kind === 'start') await started(key, payload, context, parts);
    else await happened(key, payload, context, parts);
  } catch (error) {
    if (isRefusedForGood(error)) return poison(toError(error));
    return dependencyDown(`workflow store ${parts.storeName}`, { reason: toError(error) });
  }
  parts.onEvent(key);
  return success();
}

async function started(
  key: WorkflowKey,
  { input, attributes = {}, parent }: Extract<EventMessage, { kind: 'start' }>,
  context: MessageProperties | undefined,
  parts: EventHandlerParts,
): Promise<void> {
  const version = parts.versions[0]?.options.version ?? 0;
  const kept = context === undefined ? {} : { context };
  const workflow = { version, input, seed: parts.newSeed(), attributes, parent, ...kept };
  const atMs = parts.clock.now();
  const isNew = await parts.store('starting a workflow', (store) => store.start(key, workflow, atMs));
  if (!isNew || !(parts.feed.isHeard || parts.telemetry.isHeard)) return;
  const progress = { workflow: key.name, id: key.id, run: 1, atMs, kind: 'started', version } as const;
  parts.telemetry.tell(progress);
  parts.feed.tell(progress);
}

async function happened(
  key: WorkflowKey,
  { eventId, kind, name, payload }: WorkflowEvent,
  context: MessageProperties | undefined,
  parts: EventHandlerParts,
): Promise<void> {
  const event = { eventId, kind, name, payload, ...(context !== undefined && { context }) };
  const times = { nowMs: parts.clock.now(), keepMs: EARLY_SIGNAL_MS };
  const answer = await parts.store('putting an event into an inbox', (store) => store.append(key, event, times));
  if (answer === 'ended' || answer === 'unknown')
    parts.logger.info('workflow event came for nothing', { workflow: key.name, id: key.id, event: kind, name, answer });
}

/** What makes the event one that no repeat will make right. */
async function problemOf(event: EventMessage, versions: readonly PlannedWorkflow[]): Promise<string | undefined> {
  if (event.kind === 'start') {
    const checked = await checkedValue(versions[0]?.options.input, event.input);
    return 'problem' in checked ? `its input does not match the schema: ${checked.problem}` : undefined;
  }
  if (event.kind !== 'signal') return undefined;
  const problems = await Promise.all(versions.map(({ options }) => signalProblem(event, options.signals)));
  // A workflow of an older version may take what the newest does not.
  return problems.includes(undefined) ? undefined : problems[0];
}

async function signalProblem(
  { name = '', payload }: WorkflowEvent,
  signals: PlannedWorkflow['options']['signals'],
): Promise<string | undefined> {
  if (signals === undefined) return undefined;
  if (!Object.hasOwn(signals, name)) return `it accepts no signal ${JSON.stringify(name)}`;
  const checked = await checkedValue(signals[name], payload);
  return 'problem' in checked
    ? `signal ${JSON.stringify(name)} does not match its schema: ${checked.problem}`
    : undefined;
}
