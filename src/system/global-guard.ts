// Replaces the globals that read time and chance, set timers and send requests by ones that tell when they are called where
// they should not be. Who calls is known by the async context, so that all other code of the process is left alone; from the
// first use of `within` on every promise of the process costs a little more.
import { AsyncLocalStorage } from 'node:async_hooks';
import nodeCrypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { performance } from 'node:perf_hooks';
import type { GlobalGuard, GlobalUse } from '../ports/global-guard.js';

type Report = (use: GlobalUse) => void;

interface Watched {
  readonly owner: object;
  readonly name: string;
  readonly what: string;
  readonly instead: string;
  /** Also where a package calls it. */
  readonly always?: true | undefined;
}

const STEP = 'flow.step() for what is to be done outside';
const CHANCE = 'flow.random() or flow.uuid()';

const WATCHED: readonly Watched[] = [
  { owner: Date, name: 'now', what: 'Date.now()', instead: 'flow.now()' },
  { owner: performance, name: 'now', what: 'performance.now()', instead: 'flow.now()' },
  { owner: Math, name: 'random', what: 'Math.random()', instead: 'flow.random()' },
  { owner: globalThis.crypto, name: 'randomUUID', what: 'crypto.randomUUID()', instead: 'flow.uuid()', always: true },
  {
    owner: globalThis.crypto,
    name: 'getRandomValues',
    what: 'crypto.getRandomValues()',
    instead: CHANCE,
    always: true,
  },
  ...['randomUUID', 'randomBytes', 'randomInt'].map(
    (name) => ({ owner: nodeCrypto, name, what: `crypto.${name}()`, instead: CHANCE, always: true }) as const,
  ),
  ...['setTimeout', 'setInterval', 'setImmediate'].map((name) => ({
    owner: globalThis,
    name,
    what: `${name}()`,
    instead: 'flow.sleep()',
  })),
  { owner: globalThis, name: 'fetch', what: 'fetch()', instead: STEP },
];

/** `randomUUID` of `node:crypto` calls that of nobody else: one use is one report. */
const storage = new AsyncLocalStorage<Report | undefined>();
let installations = 0;
let takeOut: readonly (() => void)[] = [];

export const systemGlobalGuard: GlobalGuard = {
  install: () => {
    if (installations++ === 0) {
      takeOut = [...WATCHED.map(watch), watchDate()];
      syncBuiltinESMExports();
    }
    let isIn = true;
    return () => {
      if (!isIn) return;
      isIn = false;
      if (--installations > 0) return;
      for (const undo of takeOut) undo();
      syncBuiltinESMExports();
    };
  },
  within: (report, run) => storage.run(report, run),
};

/** @returns what puts the original back, unless somebody else has put something there since */
function watch(watched: Watched): () => void {
  const { owner, name } = watched;
  const own = Object.getOwnPropertyDescriptor(owner, name);
  const original = Reflect.get(owner, name) as (...args: unknown[]) => unknown;
  const replacement = function (this: unknown, ...args: unknown[]): unknown {
    tell(watched, replacement);
    return Reflect.apply(original, this, args);
  };
  // Such as its name, and what `util.promisify` takes.
  Object.defineProperties(replacement, Object.getOwnPropertyDescriptors(original));
  const given = { configurable: true, writable: true, enumerable: own?.enumerable ?? true };
  Object.defineProperty(owner, name, { ...given, value: replacement });
  return () => {
    if (Reflect.get(owner, name) !== replacement) return;
    if (own === undefined) Reflect.deleteProperty(owner, name);
    else Object.defineProperty(owner, name, own);
  };
}

function watchDate(): () => void {
  const Original = Date;
  const now = { what: 'new Date()', instead: 'new Date(flow.now())' };
  const construct: ProxyHandler<DateConstructor>['construct'] = (target, args: unknown[], newTarget) => {
    if (args.length === 0) tell(now, construct);
    return Reflect.construct(target, args, newTarget) as object;
  };
  const apply = (target: DateConstructor): string => {
    tell({ what: 'Date()', instead: now.instead }, apply);
    return target();
  };
  const watched = new Proxy(Original, { construct, apply });
  globalThis.Date = watched;
  Original.prototype.constructor = watched;
  return () => {
    Original.prototype.constructor = Original;
    if (globalThis.Date === watched) globalThis.Date = Original;
  };
}

function tell(
  { what, instead, always }: Pick<Watched, 'what' | 'instead' | 'always'>,
  replacement: ((...args: never[]) => unknown) | undefined,
): void {
  const report = storage.getStore();
  if (report === undefined) return;
  const caller = callerOf(replacement);
  if (always !== true && isForeign(caller)) return;
  // What it does itself is nobody's business.
  storage.run(undefined, () => report({ what, instead, place: placeOf(caller) }));
}

/** The line of the stack that called `replacement`. */
function callerOf(replacement: ((...args: never[]) => unknown) | undefined): string | undefined {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 1;
  const holder: { stack?: string } = {};
  Error.captureStackTrace(holder, replacement);
  Error.stackTraceLimit = limit;
  return holder.stack?.split('\n')[1];
}

function isForeign(caller: string | undefined): boolean {
  return caller !== undefined && /[\\/]node_modules[\\/]|\bnode:/.test(caller);
}

function placeOf(caller: string | undefined): string | undefined {
  return /([^\\/(\s]+:\d+):\d+\)?$/.exec(caller ?? '')?.[1];
}
