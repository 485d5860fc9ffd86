// The handler of a workflow's events: it puts each into the inbox and says that it has happened, nothing else. No step runs here.
import { PulseworkError, isRefusedForGood, toError } from '../core/errors.js';
import type { Delivery } from '../core/delivery.js';
import type { HandlerDefinition } from '../core/handler-definition.js';
import { defineHandler } from '../core/handler-definition.js';
import { hours, seconds } from '../core/options.js';
import type { Outcome } from '../core/outcome.js';
import { defer, dependencyDown, poison, success } from '../core/outcome.js';
import type { MessageProperties } from '../core/properties.js';
import { journalError } from '../core/workflow-journal.js';
import type { WorkflowEvent, WorkflowKey, WorkflowParent } from '../ports/workflow-store.js';
import type { ActivationParts } from './activation-parts.js';
import type { ChildEnd, EventMessage } from './event-message.js';
import { EVENT_SUBSCRIPTION, eventTopic, eventTopicName } from './event-message.js';
import type { PlannedWorkflow } from './planned-workflow.js';
import { checkedValue } from './planned-workflow.js';
import { WorkflowError, keyOf } from './workflow-errors.js';

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

/** While a deploy goes on; the process of the older code ends with it. */
const LATER_MS = seconds(5);

type StartEvent = Extract<EventMessage, { kind: 'start' }>;

export function eventHandler(name: string, parts: EventHandlerParts): HandlerDefinition {
  const told = new Set<number | undefined>();
  const later = ({ id, version }: StartEvent): Outcome => {
    const what = 'workflow starts wait for a process with the version by which they were checked';
    if (!told.has(version)) parts.logger.warn(what, { workflow: name, id, version });
    told.add(version);
    return defer(LATER_MS, `version ${version} of workflow ${keyOf({ name, id })} is not in this process`);
  };
  return defineHandler({
    name: eventTopicName(name),
    source: eventTopic(name),
    subscription: EVENT_SUBSCRIPTION,
    // What is sent to one workflow comes in the order in which it was sent.
    type: 'key-shared',
    ordering: 'key',
    handle: (delivery) => {
      const { payload } = delivery;
      const isLater = payload.kind === 'start' && startedUnder(payload, parts.versions) === undefined;
      return isLater ? later(payload) : handled(name, delivery, parts);
    },
  });
}

async function handled(
  name: string,
  { payload, properties }: Delivery<EventMessage>,
  parts: EventHandlerParts,
): Promise<Outcome> {
  const key = { name, id: payload.id };
  const context = parts.telemetry.contextOf(properties);
  try {
    const problem = await problemOf(key, payload, parts);
    if (problem !== undefined) {
      const error = new PulseworkError('WORKFLOW_VALUE_INVALID', `workflow ${keyOf(key)}: ${problem}`);
      return refusedFor(key, payload, error, parts);
    }
    if (payload.kind !== 'start') await happened(key, payload, context, parts);
    else if (!(await started(key, payload, context, parts))) return await alreadyThere(key, payload, parts);
  } catch (error) {
    if (isRefusedForGood(error)) return refusedFor(key, payload, toError(error), parts);
    return dependencyDown(`workflow store ${parts.storeName}`, { reason: toError(error) });
  }
  parts.onEvent(key);
  return success();
}

/** A dead letter, but for the start of a child: its parent waits for an end, and hears of this one. */
function refusedFor(key: WorkflowKey, event: EventMessage, error: Error, { logger }: EventHandlerParts): Outcome {
  if (event.kind !== 'start' || event.parent === undefined) return poison(error);
  const { name, id, run, at } = event.parent;
  logger.error('workflow child was not started', {
    workflow: key.name,
    id: key.id,
    parent: keyOf(event.parent),
    error,
  });
  const eventId = `workflow/${key.name}/${key.id}/refused/${name}/${id}/${run}/${at}`;
  const payload: ChildEnd = { run, at, error: journalError(error) };
  return success(eventTopic(name).message({ v: 1, id, kind: 'child-ended', eventId, payload }, { key: id }));
}

/** Most often the start came twice. A child that somebody else has started never tells this parent of its end. */
async function alreadyThere(key: WorkflowKey, event: StartEvent, parts: EventHandlerParts): Promise<Outcome> {
  parts.onEvent(key);
  const { parent } = event;
  if (parent === undefined || (await isChildOf(parent, key, parts))) return success();
  const rule = `there is a workflow ${keyOf(key)} already, which this one has not started; give the child another id`;
  return refusedFor(key, event, new WorkflowError('WORKFLOW_FAILED', rule, { workflow: key }), parts);
}

/** Also where there is none of that id (any more). */
async function isChildOf(parent: WorkflowParent, key: WorkflowKey, parts: EventHandlerParts): Promise<boolean> {
  const known = await parts.store('reading a workflow', (store) => store.get(key));
  if (known === undefined) return true;
  const { name, id, run, at } = known.parent ?? {};
  return name === parent.name && id === parent.id && run === parent.run && at === parent.at;
}

/** @returns whether it is new */
async function started(
  key: WorkflowKey,
  event: StartEvent,
  context: MessageProperties | undefined,
  parts: EventHandlerParts,
): Promise<boolean> {
  const { input, attributes = {}, parent } = event;
  const version = startedUnder(event, parts.versions)?.options.version ?? 0;
  const kept = context === undefined ? {} : { context };
  const workflow = { version, input, seed: parts.newSeed(), attributes, parent, ...kept };
  const atMs = parts.clock.now();
  const isNew = await parts.store('starting a workflow', (store) => store.start(key, workflow, atMs));
  if (!isNew || !parts.feed.isHeard) return isNew;
  const progress = { workflow: key.name, id: key.id, run: 1, atMs, kind: 'started', version } as const;
  parts.feed.tell(progress);
  return true;
}

async function happened(
  key: WorkflowKey,
  { eventId, kind, name, payload, parent }: Exclude<EventMessage, StartEvent>,
  context: MessageProperties | undefined,
  parts: EventHandlerParts,
): Promise<void> {
  // Whoever sends signals names what has happened to him: two of his signals may come of one thing.
  const ownId = kind === 'signal' ? `${name}/${eventId}` : eventId;
  const event = { eventId: ownId, kind, name, payload, ...(context !== undefined && { context }) };
  const times = { nowMs: parts.clock.now(), keepMs: EARLY_SIGNAL_MS };
  const answer =
    parent === undefined || (await isChildOf(parent, key, parts))
      ? await parts.store('putting an event into an inbox', (store) => store.append(key, event, times))
      : 'of another parent';
  if (answer === 'ended' || answer === 'unknown' || answer === 'of another parent')
    parts.logger.info('workflow event came for nothing', { workflow: key.name, id: key.id, event: kind, name, answer });
}

/** What makes the event one that no repeat will make right. */
async function problemOf(
  key: WorkflowKey,
  event: EventMessage,
  { versions, store }: EventHandlerParts,
): Promise<string | undefined> {
  if (event.kind === 'start') {
    const checked = await checkedValue(startedUnder(event, versions)?.options.input, event.input);
    return 'problem' in checked ? `its input does not match the schema: ${checked.problem}` : undefined;
  }
  if (event.kind !== 'signal') return undefined;
  const problems = await Promise.all(versions.map(({ options }) => signalProblem(event, options.signals)));
  // A workflow of an older version may take what the newest does not.
  if (problems.includes(undefined)) return undefined;
  const known = await store('reading a workflow', (kept) => kept.get(key));
  const isElsewhere = known !== undefined && !versions.some(({ options }) => options.version === known.version);
  return isElsewhere ? undefined : problems[0];
}

/**
 * By which definition a workflow begins: the one by which its input was checked, or the newest where that one is no longer here.
 * @returns undefined where a process of a later deploy has it
 */
function startedUnder({ version }: StartEvent, versions: readonly PlannedWorkflow[]): PlannedWorkflow | undefined {
  const [newest] = versions;
  if (version === undefined) return newest;
  const own = versions.find(({ options }) => options.version === version);
  return own ?? (version > (newest?.options.version ?? 0) ? undefined : newest);
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
