// A process that runs the workflows of `workflow-kills` until it is killed, or in its last life until all have ended: then it tells of
// each end. Its one argument is its settings.
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import process from 'node:process';
import pg from 'pg';
import { Runtime, consoleLogger, systemClock } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { postgresWorkflowStore } from '../../../src/postgres.js';
import { sqliteStore, sqliteWorkflowStore } from '../../../src/sqlite.js';
import { wire } from '../../../src/wire.js';
import type { StepContext, WorkflowStore } from '../../../src/workflow.js';
import { Workflows } from '../../../src/workflow.js';
import type { Command } from '../../../src/workflow/command.js';
import { SeededValues } from '../../../src/workflow/seeded-values.js';
import type { StepStubs, WorkflowsOptions } from '../../../src/workflow/workflows-options.js';
import { STEP_STUBS } from '../../../src/workflow/workflows-options.js';
import { Ledger } from './ledger.js';
import type { KillsSettings, PlannedWorkflow } from './kills-plan.js';
import { plannedWorkflows } from './kills-plan.js';
import { killsDefinitions, killsHandlers } from './kills-workflows.js';
import { writingLate } from './late-store.js';

/** Of attempts, in each of the ways in which one can be out of humour; only the first two are. */
const SHARE = 0.12;
const MAX_PAUSE_MS = 20;
const MAX_MOODY_ATTEMPTS = 2;

/**
 * What a killed process held is taken over soon, but not so soon that a busy machine loses its leases all the time; and few are
 * worked on at a time, for the same reason.
 */
const PACE = { leaseMs: 2_000, scanIntervalMs: 400, concurrency: 20 };

const settings = JSON.parse(process.argv[2] ?? '{}') as KillsSettings;
const { folder, seed, mistake } = settings;

function tell(line: string): void {
  process.stdout.write(`${line}\n`);
}

function chanceOf(key: string): () => number {
  const values = new SeededValues(`${seed}/${key}`);
  return () => values.next(0) / 2 ** 32;
}

/** The step's work, which may fail before or behind what it does, and takes its time. */
async function moodyAttempt(command: Command, context: StepContext): Promise<unknown> {
  const { idempotencyKey: key, attempt } = context;
  const chance = chanceOf(`${key}/${attempt}`);
  const isMoody = (): boolean => attempt <= MAX_MOODY_ATTEMPTS && chance() < SHARE;
  if (isMoody()) throw new Error('not now');
  await sleep(chance() * MAX_PAUSE_MS);
  const done: unknown = await ledger.within({ key, attempt }, () => command.step?.run?.(context));
  await sleep(chance() * MAX_PAUSE_MS);
  if (isMoody()) throw new Error('the answer is lost');
  return done;
}

function newStore(): WorkflowStore {
  const { store } = settings;
  if (store.kind === 'sqlite') return sqliteWorkflowStore({ path: join(folder, 'workflows.db') });
  const pool = new pg.Pool({ connectionString: store.url, max: 8 });
  pool.on('error', () => undefined);
  return postgresWorkflowStore({ pool, schema: store.schema });
}

async function send(workflows: Workflows, { name, id, input, signal, isCancelled }: PlannedWorkflow): Promise<void> {
  const signalled = async (): Promise<void> => {
    if (signal !== undefined) await workflows.signal(name, id, signal.name, signal.payload, { eventId: 'the signal' });
  };
  if (signal?.isEarly === true) await signalled();
  await workflows.start(name, { id, input });
  if (signal?.isEarly === false) await signalled();
  if (isCancelled === true) await workflows.cancel(name, id);
}

async function tellEnds(workflows: Workflows, planned: readonly PlannedWorkflow[]): Promise<void> {
  await Promise.allSettled(planned.map(({ name, id }) => workflows.handle(name, id).result()));
  // Children of a parent that has failed may go on.
  for (const isOpen of [{ status: 'running' }, { status: 'blocked' }] as const)
    while ((await workflows.list({ ...isOpen, limit: 1 })).length > 0 && systemClock.now() < untilMs) await sleep(50);
  let after: Awaited<ReturnType<Workflows['list']>>[number] | undefined;
  do {
    const page = await workflows.list({ after, limit: 50 });
    for (const { name, id } of page) {
      const { record, journal } = await workflows.history(name, id);
      tell(`end ${JSON.stringify({ record, journal })}`);
    }
    after = page.at(-1);
  } while (after !== undefined);
}

const LONGEST_MS = 120_000;
const untilMs = systemClock.now() + LONGEST_MS;
tell('begins');
const ledger = new Ledger(folder);
const { broker } = settings;
const prefix = broker.kind === 'pulsar' ? broker.prefix : '';
const runtime = await Runtime.start({
  transport:
    broker.kind === 'pulsar' ? wire({ serviceUrl: broker.url }) : embedded({ store: sqliteStore({ dir: folder }) }),
  // What is named in full is where an answer goes.
  topics: (name) => (name.includes('://') ? name : `${prefix}${name}`),
  handlers: killsHandlers(
    ledger,
    (key, attempt) => attempt <= MAX_MOODY_ATTEMPTS && chanceOf(`${key}/${attempt}`)() < SHARE,
  ),
  logger: consoleLogger({ level: 'error' }),
});
const workFor: StepStubs = (_, command) =>
  command.step?.run === undefined ? undefined : (context) => moodyAttempt(command, context);
const store = mistake === 'writes-late' ? writingLate(newStore()) : newStore();
const definitions = killsDefinitions(ledger, mistake);
const options: WorkflowsOptions = { runtime, store, definitions, ...PACE };
const workflows = await Workflows.start({ ...options, [STEP_STUBS]: workFor } as WorkflowsOptions);
const planned = plannedWorkflows(settings.count);
await Promise.all(planned.map((workflow) => send(workflows, workflow)));
tell('sent');
if (settings.isLast) {
  await tellEnds(workflows, planned);
  // Receipts are on their way.
  await sleep(500);
  await runtime.drain();
  ledger.close();
  tell('ended');
  process.exit(0);
}
