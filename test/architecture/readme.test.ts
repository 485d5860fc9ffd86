// README.md is what people copy from: its programs compile and run, its commands exist, and its tables say what the code does.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defer, dependencyDown, fatal, poison, retry, retryAfter, skip, success } from 'pulsework';
import { settlementFor } from '../../src/core/settlement.js';
import type { Capability, Outcome, SubscriptionType } from 'pulsework';
import { embedded } from 'pulsework/embedded';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DEFAULT_BACKOFF } from '../../src/core/backoff.js';
import { DEFAULT_BATCH_LIMITS } from '../../src/core/batch-handler.js';
import type { DelayedDelivery } from '../../src/core/handler-definition.js';
import { HANDLER_OPTION_NAMES, defineHandler } from '../../src/core/handler-definition.js';
import { DEFAULT_REDELIVERY_POLICY } from '../../src/core/redelivery-policy.js';
import { DEFAULT_NAMESPACE, deadLetterTopicName, retryTopicName } from '../../src/core/topic-name.js';
import { DEFAULT_NEGATIVE_ACK_TRACKER } from '../../src/redelivery/negative-ack-options.js';
import { DEFAULT_HANDLER_OPTIONS, planHandler } from '../../src/runtime/handler-plan.js';
import type { HandlerPlan } from '../../src/runtime/handler-plan.js';
import { DEFAULT_RUNTIME_OPTIONS, resolveRuntimeOptions } from '../../src/runtime/runtime-options.js';
import { runProgram } from '../support/run-node.js';
import { ROOT, repositoryFiles, textOf } from './source-files.js';

const readme = textOf('README.md');
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

function section(title: string): string {
  const found = readme.split(/^## /m).find((text) => text.startsWith(`${title}\n`));
  if (found === undefined) throw new Error(`README.md has no section ${title}`);
  return found;
}

/** The cells of a section's table, without its head. */
function rowsOf(title: string): string[][] {
  const lines = section(title)
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
const [handlerProgram = '', batchProgram = '', testingProgram = ''] = programs;
let folder = '';

/** A project as a user has it: its own tsconfig.json with the options of this one, packages in node_modules. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pulsework-readme-'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  const options = { typeRoots: [join(ROOT, 'node_modules', '@types')] };
  const tsconfig = { extends: join(ROOT, 'tsconfig.json'), include: ['*.ts'], compilerOptions: options };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig));
  programs.forEach((text, index) => {
    writeFileSync(join(folder, `program-${index}.ts`), text);
  });
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const runIn = (name: string, options: Parameters<typeof runProgram>[1] = {}): ReturnType<typeof runProgram> =>
  runProgram(join(folder, name), { tsconfig: join(folder, 'tsconfig.json'), ...options });

it('every program in it compiles', { timeout: 240_000 }, () => {
  const compile = (): string =>
    execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder], {
      encoding: 'utf8',
      stdio: 'pipe',
    });

  expect(programs).toHaveLength(3);
  expect(compile()).toBe('');
});

it('the handler in it is retried, succeeds and drains on SIGTERM', { timeout: 60_000 }, async () => {
  const run = await runIn('program-0.ts', {
    env: { PULSEWORK_LOG_LEVEL: 'debug' },
    signal: { name: 'SIGTERM', after: '"message":"delivery acknowledged"' },
  });

  expect(run.stdout).toMatch(/"delivery will run again".*"delayMs":1000/);
  expect(run).toMatchObject({ stderr: '', exit: 0 });
});

it('the handler in it takes at most 25 lines without blank ones', () => {
  expect(handlerProgram.split('\n').filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(25);
});

it('the batch handler in it is one, and takes at most 13 lines', () => {
  expect(batchProgram).toContain('batch: { maxMessages: 500, maxWaitMs: 200 }');
  expect(batchProgram.trimEnd().split('\n').length).toBeLessThanOrEqual(13);
});

it('the test in it holds', { timeout: 60_000 }, async () => {
  expect(testingProgram).toContain('assert.deepEqual(attempts, [1, 2, 3])');
  expect(await runIn('program-2.ts')).toEqual({ stdout: '', stderr: '', exit: 0 });
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
  const shown = (/```text\n(.*?)```/s.exec(section('What you see'))?.[1] ?? '').trimEnd().split('\n');
  const places = shown.map((line) => written.indexOf(line));

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
  const policy = DEFAULT_REDELIVERY_POLICY;
  const where = {
    type: 'shared',
    ordering: 'none',
    deadLetter: 'publish',
    republishes: false,
    heldFull: false,
  } as const;
  return settlementFor(outcome, { attempt, policy, ...where, now: 0, random: () => 0.5 });
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
  const options = { type, timeoutMs, handle: () => success() };
  const definition = defineHandler({ name: 'a', source: 't', subscription: 's', ...options });
  const names = { fullName: (name: string) => name, consumerName: (name: string) => name };
  return planHandler(definition, { ...names, redelivery: undefined, capabilities: new Set(capabilities) });
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

it('its table of defaults says what the code does', () => {
  const plan = planOf();
  const inSeconds = (ms: number): string => `${ms / 1_000} s`;
  const count = (n: number): string => n.toLocaleString('en-US');
  const { minMs, maxMs, multiplier, jitter } = DEFAULT_BACKOFF;
  const batch = DEFAULT_BATCH_LIMITS;

  expect([planOf('exclusive').concurrency, planOf('failover').concurrency, jitter]).toEqual([1, 1, 'none']);
  expect(
    Object.fromEntries(rowsOf('Defaults').map(([option = '', value]) => [option.replaceAll('`', ''), value])),
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
    deadLetterSubscription: plan.deadLetterSubscription === plan.spec.subscription ? "the handler's subscription" : '?',
    onDeadLetterRefused: plan.onDeadLetterRefused === 'hold' ? '`hold`' : '?',
    delayedDelivery: `\`${delayedDeliveryOf()}\``,
    attemptStore: resolveRuntimeOptions({ transport: embedded(), handlers: [] }).attemptStore ?? 'none',
    'delayMs of a stand-alone NegativeAckTracker': inSeconds(DEFAULT_NEGATIVE_ACK_TRACKER.delayMs),
    deadLetterTopic: `\`${deadLetterTopicName('<topic>', '<subscription>')}\``,
    maxHeld: count(DEFAULT_HANDLER_OPTIONS.maxHeld),
    maxHeldBytes: `${DEFAULT_HANDLER_OPTIONS.maxHeldBytes / 1024 ** 2} MiB`,
    maxLaneMessages: count(DEFAULT_HANDLER_OPTIONS.maxLaneMessages),
    namespace: `\`${DEFAULT_NAMESPACE}\``,
    drainDeadlineMs: inSeconds(DEFAULT_RUNTIME_OPTIONS.drainDeadlineMs),
    callTimeoutMs: inSeconds(DEFAULT_RUNTIME_OPTIONS.callTimeoutMs),
    duplicateWindowMs: inSeconds(DEFAULT_RUNTIME_OPTIONS.duplicateWindowMs),
  });
});

it('its defaults, or what stands below them, name every option of a handler', () => {
  const named = new Set([...section('Defaults').matchAll(/`(\w+)(?:\.\w+)?`/g)].map(([, name]) => name));

  expect(HANDLER_OPTION_NAMES.filter((name) => !named.has(name))).toEqual([]);
});

it('its table of entry points has those of package.json', () => {
  const listed = rowsOf('Entry points').map(([name = '']) => name.replaceAll('`', ''));
  const exported = Object.keys(manifest.exports).filter((path) => path !== './package.json');

  expect(listed).toEqual(exported.map((path) => path.replace('.', manifest.name)));
});

it('its table of examples has all of them', () => {
  const listed = rowsOf('What you see').map(([name = '']) => /^\[(.*?)\]/.exec(name)?.[1]);
  const folders = new Set(repositoryFiles.flatMap((path) => /^examples\/([^/]+)\//.exec(path)?.[1] ?? []));

  expect(listed).toEqual([...folders].sort());
});

it('its folders and links exist', () => {
  const folders = rowsOf('Folders').map(([name = '']) => name.replaceAll('`', ''));
  const links = [...readme.matchAll(/\]\(([^)#]+)\)/g)].map(([, path = '']) => path);

  expect([...folders, ...links].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

it('its folders are those of src, and the others that a newcomer meets', () => {
  const inSrc = new Set(repositoryFiles.flatMap((path) => /^(src\/[^/]+)\//.exec(path)?.[1] ?? []));
  const listed = rowsOf('Folders').map(([name = '']) => name.replaceAll('`', ''));

  expect(listed.filter((path) => path.startsWith('src/')).sort()).toEqual([...inSrc].sort());
});
