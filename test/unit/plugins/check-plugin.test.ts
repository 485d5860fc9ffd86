// The check of plugins finds what is wrong with one, and finds nothing where nothing is.
import { expect, it } from 'vitest';
import type { Delivery, Outcome, Plugin } from '../../../src/index.js';
import { toError } from '../../../src/core/errors.js';
import { skip, success } from '../../../src/index.js';
import { auditLog, healthEndpoint, rateLimit, drainOnSignals, slowHandlerWarning } from '../../../src/plugins.js';
import type { PluginCheckOptions } from '../../../src/testing.js';
import { checkPlugin } from '../../../src/testing.js';
import { HandlerTiming } from '../../../examples/05-plugin/handler-timing.js';
import { OutcomeCounter } from '../../../examples/05-plugin/outcome-counter.js';
import { unhandledDuring } from '../../support/unhandled.js';

type Next = () => Outcome | Promise<Outcome>;
/** The same for each plugin that is made, or made for each. */
type Hooks = Partial<Plugin> | (() => Partial<Plugin>);
type Publish = NonNullable<Plugin['aroundPublish']>;

/** What each problem says, without what was going on, each once. */
async function problemsOf(plugin: Hooks, options?: PluginCheckOptions): Promise<readonly string[]> {
  const hooks = typeof plugin === 'function' ? plugin : () => plugin;
  const problems = await checkPlugin(() => ({ name: 'p', ...hooks() }), options);
  return [...new Set(problems.map((problem) => problem.replace(/^[^:]*: /, '')))];
}

it.each<[string, () => Plugin]>([
  ['without hooks', () => ({ name: 'p' })],
  ['that stands after others', () => ({ name: 'p', after: ['a', 'b'] })],
  ['drainOnSignals', () => drainOnSignals()],
  ['rateLimit', () => rateLimit({ perSecond: 2 })],
  ['slowHandlerWarning', () => slowHandlerWarning({ afterMs: 1_000, repeat: true })],
  ['auditLog', () => auditLog({ write: () => Promise.resolve() })],
  ['healthEndpoint', () => healthEndpoint({ port: 0 })],
  ['HandlerTiming of the example', () => new HandlerTiming()],
  ['OutcomeCounter of the example', () => new OutcomeCounter(() => undefined)],
])('a plugin that is right has no problems: %s', { timeout: 60_000 }, async (_, newPlugin) => {
  expect(await checkPlugin(newPlugin)).toEqual([]);
});

const never = (): Promise<never> => new Promise(() => undefined);
const error = new Error('of the plugin');
const throwing = (): never => {
  throw error;
};

it.each<[string, Hooks, string]>([
  [
    'calls next() twice',
    { aroundHandler: async (_, next) => (await next(), next()) },
    'aroundHandler calls next() more than once',
  ],
  ['does not call next()', { aroundHandler: () => success() }, 'aroundHandler ends without calling next()'],
  [
    'throws before next()',
    { aroundHandler: throwing },
    'aroundHandler ends without calling next(), by throwing Error: of the plugin',
  ],
  [
    'does not wait for next()',
    { aroundHandler: (_, next) => (void Promise.resolve(next()).catch(() => undefined), success()) },
    'aroundHandler does not wait for what next() promises',
  ],
  [
    'gives another outcome',
    { aroundHandler: async (_, next) => (await next(), skip('by the plugin')) },
    'aroundHandler does not return what next() gave: the outcome skip in place of the outcome success',
  ],
  [
    'gives nothing',
    { aroundHandler: async (_, next) => (await next(), undefined as never) },
    'aroundHandler must return an outcome, got undefined',
  ],
  [
    'swallows errors',
    { aroundHandler: async (_, next) => Promise.resolve(next()).catch(() => success()) },
    'aroundHandler swallows the error of next()',
  ],
  [
    'wraps errors',
    { aroundHandler: async (_, next: Next) => Promise.resolve().then(next).catch(throwing) },
    'aroundHandler throws another error than next() did: Error: of the plugin',
  ],
  [
    'throws after next()',
    { aroundHandler: async (_, next) => (await next(), throwing()) },
    'aroundHandler throws although next() succeeded: Error: of the plugin',
  ],
  ['runs one after the other', oneByOne, 'it lets 1 of 4 runs go on at a time'],
  [
    'keeps on after the abort',
    { aroundHandler: (delivery, next) => Promise.resolve().then(next).catch(hangingOnceAborted(delivery)) },
    "a run does not end although its delivery's signal has aborted",
  ],
  [
    'publishes twice',
    { aroundPublish: async (m, next) => (await next(m), next(m)) },
    'aroundPublish calls next() more than once',
  ],
  ['publishes nothing', { aroundPublish: async () => undefined }, 'aroundPublish ends without calling next()'],
  [
    'does not wait for the publish',
    { aroundPublish: async (m, next) => void next(m).catch(() => undefined) },
    'aroundPublish does not wait for what next() promises',
  ],
  [
    'swallows what a publish throws',
    { aroundPublish: (async (m, next) => next(m).catch(() => undefined)) satisfies Publish },
    'aroundPublish swallows the error of next()',
  ],
  [
    'forgets the message',
    { aroundPublish: async (_, next) => next(undefined as never) },
    'aroundPublish must give next() a topic and a message, got undefined',
  ],
  ['throws in onSettled', { onSettled: throwing }, 'onSettled throws Error: of the plugin'],
  [
    'rejects in onDeadLettered',
    { onDeadLettered: () => Promise.reject(error) as never },
    'onDeadLettered throws Error: of the plugin',
  ],
  ['throws in onStart', { onStart: throwing }, 'onStart throws Error: of the plugin'],
  ['throws in onDrain', { onDrain: throwing }, 'onDrain throws Error: of the plugin'],
  ['throws in onClose', { onClose: throwing }, 'onClose throws Error: of the plugin'],
  ['never ends its onDrain', { onDrain: never }, 'onDrain had not ended when the runtime had closed'],
])('a plugin is found out that %s', { timeout: 60_000 }, async (_, plugin, problem) => {
  const found: (readonly string[])[] = [];

  const unhandled = await unhandledDuring(async () => void found.push(await problemsOf(plugin)));

  expect(found.flat()).toContain(problem);
  expect(unhandled).toEqual([]);
});

function oneByOne(): Partial<Plugin> {
  let last: Promise<unknown> = Promise.resolve();
  return {
    aroundHandler: (_, next) => {
      const run = last.then(next, next);
      last = run;
      return run;
    },
  };
}

function hangingOnceAborted({ signal }: Delivery): (error: unknown) => Promise<never> {
  return (thrown) => (signal.aborted ? never() : Promise.reject(toError(thrown)));
}

it('a plugin is found out that leaves a timer of the clock', { timeout: 60_000 }, async () => {
  const plugin: Partial<Plugin> = { onStart: ({ clock }) => void clock.setTimer(3_600_000, () => undefined) };

  expect(await problemsOf(plugin)).toEqual(["after onClose, timers are left on the runtime's clock: 1"]);
});

it('a plugin is found out that leaves timers and listeners of the process', { timeout: 60_000 }, async () => {
  const timers: NodeJS.Timeout[] = [];
  const limit = process.getMaxListeners();
  process.setMaxListeners(100);
  const listener = (): void => undefined;
  const onStart = (): void => {
    // Several: one of another test file of this process may end meanwhile.
    for (let i = 0; i < 5; i += 1) timers.push(setInterval(() => undefined, 60_000));
    process.on('SIGWINCH', listener);
  };
  const problems = await checkPlugin(() => ({ name: 'p', onStart }));
  for (const timer of timers) clearInterval(timer);
  for (let i = process.listenerCount('SIGWINCH'); i > 0; i -= 1) process.off('SIGWINCH', listener);
  process.setMaxListeners(limit);

  expect(problems.toSorted()).toEqual([
    'after onClose, something of the process is left open each time: listener SIGWINCH',
    'after onClose, something of the process is left open each time: resource Timeout',
  ]);
});

it(
  'a plugin that never starts or closes is found out, and holds nothing up for ever',
  { timeout: 120_000 },
  async () => {
    expect(await problemsOf({ onStart: never })).toContain('the start never ended; onStart had not ended');
    expect(await problemsOf({ onClose: never })).toContain('onClose had not ended when the runtime had closed');
  },
);

it('what a plugin does on purpose is no problem where it is said', { timeout: 60_000 }, async () => {
  const replacing: Partial<Plugin> = { aroundHandler: () => skip('switched off') };

  expect(await problemsOf(replacing, { replaces: true })).toEqual([]);
  expect(await problemsOf(oneByOne, { holdsBack: true })).toEqual([]);
});

it('the title of a problem says what was going on', { timeout: 60_000 }, async () => {
  const swallowing: Partial<Plugin> = {
    aroundHandler: async (_, next) =>
      Promise.resolve()
        .then(next)
        .catch(() => success()),
  };

  expect(await checkPlugin(() => ({ name: 'p', ...swallowing }))).toContain(
    'a handler throws and rejects: aroundHandler swallows the error of next()',
  );
});

it.each<[string, unknown, unknown, readonly string[]]>([
  [
    'a plugin in place of a function',
    { name: 'p' },
    {},
    ['checkPlugin: it takes a function that makes the plugin, () => new MyPlugin(), got an object'],
  ],
  ['a function that throws', throwing, {}, ['making the plugin throws: of the plugin']],
  ['a function that makes nothing', () => undefined, {}, ['the function must give a plugin, got undefined']],
  [
    'a misspelt hook',
    () => ({ name: 'p', onSettld: () => undefined }),
    {},
    ['plugin "p": unknown option "onSettld", did you mean "onSettled"?'],
  ],
  [
    'an unknown option',
    () => ({ name: 'p' }),
    { replace: true },
    ['checkPlugin: unknown option "replace", did you mean "replaces"?'],
  ],
])('%s is a problem too, and nothing is thrown', async (_, newPlugin, options, problems) => {
  expect(await checkPlugin(newPlugin as never, options as never)).toEqual(problems);
});
