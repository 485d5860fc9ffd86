// README.md is what people copy from: its programs compile and run, its commands exist, and its tables say what the code does.
// So do the tables of docs/options.md and docs/architecture.md, which are the long form of it.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defer, dependencyDown, fatal, poison, retry, retryAfter, skip, success } from 'pulsework';
import { settlementFor } from '../../src/core/settlement.js';
import type { Capability, Delivery, MessageOptions, Outcome, Runtime, SubscriptionType } from 'pulsework';
import { embedded } from 'pulsework/embedded';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DEFAULT_BACKOFF } from '../../src/core/backoff.js';
import { DEFAULT_BATCH_LIMITS } from '../../src/core/batch-handler.js';
import { DEFAULT_DELIVERY_PAUSE as pause } from '../../src/core/delivery-pause.js';
import type { DelayedDelivery } from '../../src/core/handler-definition.js';
import { HANDLER_OPTION_NAMES, defineHandler } from '../../src/core/handler-definition.js';
import { DEFAULT_REDELIVERY_POLICY } from '../../src/core/redelivery-policy.js';
import { DEFAULT_NAMESPACE, deadLetterTopicName, retryTopicName } from '../../src/core/topic-name.js';
import { DEFAULT_NEGATIVE_ACK_TRACKER } from '../../src/redelivery/negative-ack-options.js';
import { DEFAULT_HANDLER_OPTIONS, planHandler } from '../../src/runtime/handler-plan.js';
import type { HandlerPlan } from '../../src/runtime/handler-plan.js';
import {
  DEFAULT_RUNTIME_OPTIONS,
  RUNTIME_OPTION_NAMES,
  resolveRuntimeOptions,
} from '../../src/runtime/runtime-options.js';
import { runProgram } from '../support/run-node.js';
import { settlementFacts } from '../support/settlement-facts.js';
import { ROOT, repositoryFiles, textOf } from './source-files.js';

const readme = textOf('README.md');
const options = textOf('docs/options.md');
const architecture = textOf('docs/architecture.md');
const manifest = JSON.parse(textOf('package.json')) as {
  readonly name: string;
  readonly engines: { readonly node: string };
  readonly exports: Readonly<Record<string, unknown>>;
  readonly scripts: Readonly<Record<string, string>>;
};

/** Code blocks in a language; '' for those that name none. */
function blocks(language: string): string[] {
  return [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map((match) => match[1] ?? '');
}

function section(title: string, document = readme): string {
  const found = document.split(/^## /m).find((text) => text.startsWith(`${title}\n`));
  if (found === undefined) throw new Error(`no section ${title}`);
  return found;
}

/** The cells of a section's table, without its head. */
function rowsOf(title: string, document = readme): string[][] {
  const lines = section(title, document)
    .split('\n')
    .filter((line) => line.startsWith('|'));
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
}

const programs = blocks('ts');
const [handlerProgram = '', testingProgram = ''] = programs;
let folder = '';

/** A project as a user has it: its own tsconfig.json with the options of this one, packages in node_modules. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pulsework-readme-'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  const compilerOptions = { typeRoots: [join(ROOT, 'node_modules', '@types')] };
  const tsconfig = { extends: join(ROOT, 'tsconfig.json'), include: ['*.ts'], compilerOptions };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig));
  programs.forEach((text, index) => {
    writeFileSync(join(folder, `program-${index}.ts`), text);
  });
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const runIn = (name: string, how: Parameters<typeof runProgram>[1] = {}): ReturnType<typeof runProgram> =>
  runProgram(join(folder, name), { tsconfig: join(folder, 'tsconfig.json'), ...how });

it('every program in it compiles', { timeout: 240_000 }, () => {
  const compile = (): string =>
    execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder], {
      encoding: 'utf8',
      stdio: 'pipe',
    });

  expect(programs).toHaveLength(2);
  expect(compile()).toBe('');
});

it.each(['SIGTERM', 'SIGINT'] as const)(
  'the handler in it is retried, succeeds and drains on %s',
  { timeout: 60_000 },
  async (name) => {
    const run = await runIn('program-0.ts', {
      env: { PULSEWORK_LOG_LEVEL: 'debug' },
      signal: { name, after: '"message":"delivery acknowledged"' },
    });
    const shown = [...(handlerProgram.split('\n').at(-2) ?? '').matchAll(/"(delivery [a-z ]+)"/g)].map(
      ([, line]) => line,
    );

    expect(shown).toEqual(['delivery will run again', 'delivery acknowledged']);
    expect(run.stdout).toMatch(/"delivery will run again".*"delayMs":1000/);
    expect(run).toMatchObject({ stderr: '', exit: 0 });
  },
);

it('is read in three minutes', () => {
  const words = readme.split(/[\s|`]+/).filter((word) => /\w/.test(word));
  expect(words.length).toBeLessThanOrEqual(900);
});

it('what it installs for a project of your own is what its programs need, and its compiler options do for them', () => {
  const shell = blocks('sh')[0] ?? '';
  const imported = new Set(
    programs.flatMap((text) => [...text.matchAll(/from '(?!node:|pulsework)([^']+)'/g)].map(([, name]) => name)),
  );

  expect(shell).toContain('npm pkg set type=module');
  for (const name of [...imported, 'typescript', 'tsx', '@types/node']) expect(shell).toContain(` ${name}`);
  const flags = [...shell.matchAll(/--(\w+)(?: (\w+))?/g)].map(([, flag, value]) => [flag, value]);
  expect(Object.fromEntries(flags)).toMatchObject({
    module: 'nodenext',
    types: 'node',
    experimentalDecorators: undefined,
  });
});

it('the handler in it takes at most 25 lines without blank ones', () => {
  expect(handlerProgram.split('\n').filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(25);
});

it('the test in it holds', { timeout: 60_000 }, async () => {
  expect(testingProgram).toContain('assert.deepEqual(attempts, [1, 2, 3])');
  const env = { PULSEWORK_LOG_LEVEL: 'error' };
  expect(await runIn('program-1.ts', { env })).toEqual({ stdout: '', stderr: '', exit: 0 });
});

it('its two commands are those of package.json and of the gate', () => {
  expect(blocks('')[0]?.trimEnd().split('\n')).toEqual(['npm ci && npm start', 'npm ci && npm test']);
  expect(manifest.scripts['start']).toBe('tsx examples/01-first-handler/main.ts');
  expect(manifest.scripts['test']).toMatch(/./);
  expect(textOf('.ci/run').trimEnd()).toMatch(/\nnpm ci && npm test$/);
  expect(`>=${/^Node ([\d.]+) or newer/m.exec(readme)?.[1] ?? ''}`).toBe(manifest.engines.node);
});

it('what it shows of the first run is what the first example writes', () => {
  const written = textOf('examples/01-first-handler/expected-output.txt').split('\n');
  const shown = (/```text\n(.*?)```/s.exec(readme)?.[1] ?? '').trimEnd().split('\n');
  const places = shown.map((line) => written.indexOf(line));

  expect(shown.length).toBeGreaterThan(2);
  expect(places).not.toContain(-1);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
});

it('the journey names six files in their order', () => {
  const files = [...section('The journey of one message').matchAll(/src\/\S+\.ts/g)].map(([path]) => path);

  expect(files).toHaveLength(6);
  expect(files.filter((path) => !repositoryFiles.includes(path))).toEqual([]);
});

const OUTCOMES: Readonly<Record<string, Outcome>> = {
  success: success(),
  skip: skip('not for me'),
  retry: retry(),
  retryAfter: retryAfter(5_000),
  defer: defer(5_000),
  poison: poison('never'),
  dependencyDown: dependencyDown('bank'),
  fatal: fatal('stop'),
};
const WORDS = {
  acknowledge: /acknowledged/,
  redeliver: /again/,
  'dead-letter': /^dead letter/,
  skip: /^given up/,
  block: /^kept/,
  leave: /^left unsettled/,
};
const outcomeRows = rowsOf('Outcomes').map(([call = '', happens = '', spends = '']) => ({
  name: /^`(\w+)/.exec(call)?.[1] ?? call,
  happens,
  spends,
}));

function settle(outcome: Outcome, attempt: number): ReturnType<typeof settlementFor> {
  return settlementFor(outcome, settlementFacts({ attempt }));
}

it('its table of outcomes has each of them once', () => {
  expect(outcomeRows.map(({ name }) => name)).toEqual(Object.keys(OUTCOMES));
});

it.each(outcomeRows)('its table says of $name what settlementFor decides', ({ name, happens, spends }) => {
  const outcome = OUTCOMES[name] ?? success();
  const first = settle(outcome, 1);
  const last = settle(outcome, DEFAULT_REDELIVERY_POLICY.maxDeliveries);

  expect(happens).toMatch(WORDS[first.kind]);
  expect(spends).toBe(first.kind === 'redeliver' && first.spendsAttempt ? 'yes' : 'no');
  expect(happens.includes('at `maxDeliveries` a dead letter')).toBe(first.kind !== last.kind);
});

function planOf(type?: SubscriptionType, capabilities: readonly Capability[] = [], timeoutMs?: number): HandlerPlan {
  const given = { type, timeoutMs, handle: () => success() };
  const definition = defineHandler({ name: 'a', source: 't', subscription: 's', ...given });
  const names = { fullName: (name: string) => name, consumerName: (name: string) => name };
  return planHandler(definition, {
    ...names,
    redelivery: undefined,
    namespace: 'public/default',
    capabilities: new Set(capabilities),
  });
}

/** The choice that a handler without one has, by what it does. */
function delayedDeliveryOf(): DelayedDelivery {
  const inClient = [
    planOf('shared', ['delayed-delivery']),
    planOf('shared'),
    planOf('exclusive', ['delayed-delivery']),
  ];
  const [withBroker, withoutBroker, exclusive] = inClient.map(({ delaysInClient }) => delaysInClient);
  if (withBroker === true) return 'client';
  return withoutBroker === true && exclusive === true ? 'auto' : 'broker';
}

it('docs/options.md says of defaults what the code does', () => {
  const plan = planOf();
  const inSeconds = (ms: number): string => `${ms / 1_000} s`;
  const count = (n: number): string => n.toLocaleString('en-US');
  const { minMs, maxMs, multiplier, jitter } = DEFAULT_BACKOFF;
  const batch = DEFAULT_BATCH_LIMITS;

  expect([planOf('exclusive').concurrency, planOf('failover').concurrency, jitter]).toEqual([1, 1, 'none']);
  expect(
    Object.fromEntries(
      rowsOf('Of a handler, with defaults', options).map(([option = '', value]) => [option.replaceAll('`', ''), value]),
    ),
  ).toEqual({
    type: `\`${plan.spec.type}\``,
    initialPosition: `\`${plan.spec.initialPosition}\``,
    concurrency: `${plan.concurrency}; 1 on Exclusive and Failover`,
    ordering: `\`${plan.ordering}\``,
    prefetch: plan.spec.prefetch === plan.concurrency ? 'the same as `concurrency`' : String(plan.spec.prefetch),
    'redelivery.backoff': `exponential, ${inSeconds(minMs)} to ${maxMs / 60_000} min, ×${multiplier}, no jitter`,
    'redelivery.maxDeliveries': String(plan.policy.maxDeliveries),
    'timeoutMs, ackTimeoutMs': plan.timeoutMs ?? plan.ackTimeoutMs ?? 'none',
    batch: `${plan.batch === undefined ? 'none' : 'limits'}; ${batch.maxMessages} messages, ${batch.maxWaitMs} ms, ${batch.maxBytes / 1024 ** 2} MiB`,
    abandonAfterMs: planOf('shared', [], 7_000).abandonAfterMs === 7_000 ? 'the same as `timeoutMs`' : '?',
    retryTopic: `${plan.retry === undefined ? 'none' : 'a topic'}; \`true\` is \`${retryTopicName('<topic>', '<subscription>')}\``,
    deadLetter: `\`${plan.deadLetter}\``,
    onDeadLetter: `\`${plan.keyBlocks ? 'block-key' : DEFAULT_HANDLER_OPTIONS.onDeadLetter}\``,
    orderedNegativeAck: `\`${DEFAULT_HANDLER_OPTIONS.orderedNegativeAck}\``,
    deadLetterSubscription: plan.deadLetterSubscription === plan.spec.subscription ? "the handler's subscription" : '?',
    onDeadLetterRefused: plan.onDeadLetterRefused === 'hold' ? '`hold`' : '?',
    delayedDelivery: `\`${delayedDeliveryOf()}\``,
    deadLetterTopic: `\`${deadLetterTopicName('<topic>', '<subscription>')}\``,
    maxHeld: count(DEFAULT_HANDLER_OPTIONS.maxHeld),
    maxHeldBytes: `${DEFAULT_HANDLER_OPTIONS.maxHeldBytes / 1024 ** 2} MiB`,
    maxLaneMessages: count(DEFAULT_HANDLER_OPTIONS.maxLaneMessages),
    deliveryPause: `${plan.deliveryPause === undefined ? 'none' : 'on'}; window ${pause.windowSize}, ratio ${pause.failureRatio}, ${inSeconds(pause.initialDelayMs)} to ${inSeconds(pause.maxDelayMs)}, ×${pause.multiplier}`,
  });
});

it('docs/options.md says of the defaults of a runtime what the code does', () => {
  const inSeconds = (ms: number): string => `${ms / 1_000} s`;
  const rows = Object.fromEntries(
    rowsOf('Of `Runtime.start`', options).map(([name = '', value]) => [name.replaceAll('`', ''), value]),
  );
  const resolved = resolveRuntimeOptions({ transport: embedded(), handlers: [] });

  expect(rows).toMatchObject({
    namespace: `\`${DEFAULT_NAMESPACE}\``,
    plugins: resolved.plugins.length === 0 ? 'none' : 'some',
    telemetry: resolved.telemetry ?? 'none',
    attemptStore: resolved.attemptStore ?? 'none',
    maxLogRepeats: String(DEFAULT_RUNTIME_OPTIONS.maxLogRepeats),
    drainDeadlineMs: inSeconds(DEFAULT_RUNTIME_OPTIONS.drainDeadlineMs),
    callTimeoutMs: inSeconds(DEFAULT_RUNTIME_OPTIONS.callTimeoutMs),
    duplicateWindowMs: inSeconds(DEFAULT_RUNTIME_OPTIONS.duplicateWindowMs),
  });
  expect(section('Of `Runtime.start`', options)).toContain(
    `\`delayMs\` of a stand-alone \`NegativeAckTracker\` is ${inSeconds(DEFAULT_NEGATIVE_ACK_TRACKER.delayMs)}`,
  );
});

/** Names in the first cells of a section's table. */
function namedIn(title: string): string[] {
  const firstCells = rowsOf(title, options).map(([cell = '']) => cell);
  return firstCells.flatMap((cell) => [...cell.matchAll(/`(?:runtime\.)?(\w+)/g)].map(([, name = '']) => name));
}

const names = <T>(members: Record<keyof Required<T>, true>): string[] => Object.keys(members).toSorted();
const MESSAGE_OPTIONS = names<MessageOptions>({
  key: true,
  orderingKey: true,
  properties: true,
  eventTime: true,
  deliverAt: true,
  deliverAfterMs: true,
  correlationId: true,
});
const DELIVERY_FIELDS = names<Delivery>({
  payload: true,
  id: true,
  position: true,
  topic: true,
  originId: true,
  subscription: true,
  handler: true,
  key: true,
  orderingKey: true,
  properties: true,
  publishTimeMs: true,
  eventTimeMs: true,
  attempt: true,
  maxDeliveries: true,
  redeliveryCount: true,
  correlationId: true,
  signal: true,
});
const RUNTIME_MEMBERS = names<Runtime>({
  closed: true,
  state: true,
  topology: true,
  health: true,
  outboxHealth: true,
  subscription: true,
  publisher: true,
  transaction: true,
  drain: true,
  close: true,
});

it('docs/options.md names every option of a handler once, with its default or without one', () => {
  const named = [...namedIn('Of a handler, with defaults'), ...namedIn('Of a handler, without defaults')];
  const required = ['name', 'source', 'subscription', 'handle', 'payload', 'codec', 'batch'];

  expect(named.toSorted()).toEqual(
    [...HANDLER_OPTION_NAMES, ...required, 'redelivery'].toSorted(), // `redelivery` has a row for each of its fields
  );
});

it.each([
  ['Of `Runtime.start`', RUNTIME_OPTION_NAMES.toSorted()],
  ['Publishing', MESSAGE_OPTIONS],
  ['A delivery', DELIVERY_FIELDS],
  ['The runtime', RUNTIME_MEMBERS],
])('docs/options.md names in "%s" all that there is', (title, expected) => {
  expect([...new Set(namedIn(title))].toSorted()).toEqual(expected);
});

it('docs/architecture.md has the entry points of package.json', () => {
  const listed = rowsOf('Entry points', architecture).map(([name = '']) => name.replaceAll('`', ''));
  const exported = Object.keys(manifest.exports).filter((path) => path !== './package.json');

  expect(listed).toEqual(exported.map((path) => path.replace('.', manifest.name)));
});

it('the table of examples has all of them', () => {
  const table = textOf('examples/README.md').matchAll(/^\| \[(.*?)\]\(\1\)/gm);
  const listed = [...table].map(([, name]) => name);
  const folders = new Set(repositoryFiles.flatMap((path) => /^examples\/([^/]+)\//.exec(path)?.[1] ?? []));

  expect(listed).toEqual([...folders].sort());
});

it('its links, and the folders of docs/architecture.md, exist', () => {
  const folders = rowsOf('Folders', architecture).map(([name = '']) => name.replaceAll('`', ''));
  const links = [...readme.matchAll(/\]\(([^)#]+)\)/g)].map(([, path = '']) => path);

  expect(links.length).toBeGreaterThan(8);
  expect([...folders, ...links].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

it('the folders of docs/architecture.md are those of src, and the others that a newcomer meets', () => {
  const inSrc = new Set(repositoryFiles.flatMap((path) => /^(src\/[^/]+)\//.exec(path)?.[1] ?? []));
  const listed = rowsOf('Folders', architecture).map(([name = '']) => name.replaceAll('`', ''));

  expect(listed.filter((path) => path.startsWith('src/')).sort()).toEqual([...inSrc].sort());
});
