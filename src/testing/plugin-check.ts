// `checkPlugin`: what an author of a plugin runs to find out whether it stands what runtimes do to it. It needs no broker
// and knows no test runner: what is wrong comes back as sentences.
import { describeValue, toError } from '../core/errors.js';
import { OptionChecker } from '../core/options.js';
import type { Plugin } from '../ports/plugin.js';
import { orderPlugins } from '../runtime/plugin-order.js';
import { processActivity } from '../system/process-activity.js';
import { settlePromises } from './fake-clock.js';
import type { PluginCase } from './plugin-conformance/plugin-cases.js';
import { pluginCases } from './plugin-conformance/plugin-cases.js';
import type { PluginCheckOptions } from './plugin-conformance/plugin-world.js';
import { NeverEnded, PluginWorld } from './plugin-conformance/plugin-world.js';

/** A runtime that leaves something open does so each time; something else in the process does so by chance. */
const LEAK_ROUNDS = 3;

/**
 * Runs the plugin in runtimes on an embedded broker, in virtual time: with handlers that succeed, fail and throw, with
 * batches, publishes that fail, drains, and a start that fails.
 * @param newPlugin makes the plugin; called for each runtime anew, as a program does at each start.
 * @returns one sentence for each problem; an empty list for a plugin that stands all of it. The first thing that never ends
 *   is the last problem. Never throws or rejects.
 */
export async function checkPlugin(
  newPlugin: () => Plugin,
  options: PluginCheckOptions = {},
): Promise<readonly string[]> {
  const made = madeBy(newPlugin, options);
  if ('problems' in made) return made.problems;
  const problems = new Set<string>();
  // The one that was made to be looked at is used too: making a plugin may have taken something.
  let plugin: Plugin | undefined = made.plugin;
  for (const pluginCase of pluginCases) {
    const ended = await runCase(pluginCase, plugin ?? newPlugin(), options, problems);
    if (!ended) return [...problems];
    plugin = undefined;
  }
  for (const left of await leftBehind(newPlugin, options)) problems.add(left);
  return [...problems];
}

/** False when something in it never ended. */
async function runCase(
  { title, run }: PluginCase,
  plugin: Plugin,
  options: PluginCheckOptions,
  problems: Set<string>,
): Promise<boolean> {
  const problem = (sentence: string): void => void problems.add(`${title}: ${sentence}`);
  const world = new PluginWorld(plugin, options, problem);
  let ended = true;
  for (const step of [() => run(world), () => world.end()]) {
    try {
      await step();
    } catch (error) {
      ended &&= !(error instanceof NeverEnded);
      problem(toError(error).message);
    }
  }
  return ended;
}

/** What is wrong with the plugin before anything is done with it. */
function madeBy(
  newPlugin: () => Plugin,
  options: PluginCheckOptions,
): { readonly plugin: Plugin } | { readonly problems: readonly string[] } {
  const check = new OptionChecker('checkPlugin');
  const names = ['replaces', 'holdsBack'] as const satisfies readonly (keyof PluginCheckOptions)[];
  if (check.object('options', options)) {
    check.unknownOptions(options, names);
    for (const name of names) check.boolean(name, options[name]);
  }
  if (typeof (newPlugin as unknown) !== 'function')
    check.problem(`it takes a function that makes the plugin, () => new MyPlugin(), got ${describeValue(newPlugin)}`);
  if (check.problems.length > 0) return { problems: check.problems };
  try {
    const plugin = newPlugin();
    if (typeof (plugin as unknown) !== 'object' || (plugin as unknown) === null)
      return { problems: [`the function must give a plugin, got ${describeValue(plugin)}`] };
    const { after } = plugin;
    const others = Array.isArray(after) ? after.map((name: string) => ({ name })) : [];
    const { problems } = orderPlugins([...others, plugin]);
    return problems.length > 0 ? { problems } : { plugin };
  } catch (error) {
    return { problems: [`making the plugin throws: ${toError(error).message}`] };
  }
}

/** Sockets, timers and listeners of the process that each runtime with the plugin leaves open. */
async function leftBehind(newPlugin: () => Plugin, options: PluginCheckOptions): Promise<readonly string[]> {
  const before = processActivity();
  for (let round = 0; round < LEAK_ROUNDS; round += 1) {
    const world = new PluginWorld(newPlugin(), options, () => undefined);
    // What goes wrong has been said by the cases.
    await world.start().catch(() => undefined);
    await world.end().catch(() => undefined);
  }
  // What is closed is gone some turns later.
  for (let turn = 0; turn < 10; turn += 1) await settlePromises();
  return [...processActivity()]
    .filter(([kind, count]) => count - (before.get(kind) ?? 0) >= LEAK_ROUNDS)
    .map(([kind]) => `after onClose, something of the process is left open each time: ${kind}`);
}
