// Which plugin stands around which, and what is wrong with the plugins given.
import { describeValue } from '../core/errors.js';
import { OptionChecker } from '../core/options.js';
import type { Plugin } from '../ports/plugin.js';

const HOOKS = [
  'aroundHandler',
  'aroundPublish',
  'onStart',
  'onSettled',
  'onDeadLettered',
  'onDrain',
  'onClose',
] as const satisfies readonly (keyof Plugin)[];

/**
 * Plugins so that each stands after those it names in `after`, else as listed.
 * Problems (duplicate, missing or circular names) are sentences for the ConfigurationError of the start.
 */
export function orderPlugins(plugins: readonly Plugin[]): {
  readonly ordered: readonly Plugin[];
  readonly problems: readonly string[];
} {
  const byName = new Map<string, Plugin>();
  const problems: string[] = [];
  const shapes = plugins.flatMap(shapeProblems);
  if (shapes.length > 0) return { ordered: [], problems: shapes };
  for (const plugin of plugins) {
    if (byName.has(plugin.name))
      problems.push(`two plugins are named ${JSON.stringify(plugin.name)}; names must be unique`);
    byName.set(plugin.name, plugin);
  }
  const ordered: Plugin[] = [];
  const visit = (plugin: Plugin, path: readonly string[]): void => {
    if (ordered.includes(plugin)) return;
    if (path.includes(plugin.name)) {
      problems.push(
        `plugins wait for each other: ${[...path.slice(path.indexOf(plugin.name)), plugin.name].join(' after ')}`,
      );
      return;
    }
    for (const name of plugin.after ?? []) {
      const earlier = byName.get(name);
      if (earlier === undefined)
        problems.push(
          `plugin ${JSON.stringify(plugin.name)} must stand after ${JSON.stringify(name)}, which is not there`,
        );
      else visit(earlier, [...path, plugin.name]);
    }
    if (!ordered.includes(plugin)) ordered.push(plugin);
  };
  for (const plugin of plugins) visit(plugin, []);
  return { ordered, problems: [...new Set(problems)] };
}

/** What is wrong with one plugin by itself. State of its own is its business; a misspelt hook would never be called. */
function shapeProblems(plugin: unknown, at: number): readonly string[] {
  if (typeof plugin !== 'object' || plugin === null)
    return [`"plugins" takes plugin objects, item ${at} is ${describeValue(plugin)}`];
  const { name, after, ...rest } = plugin as Partial<Plugin>;
  if (typeof name !== 'string' || name === '') return [`item ${at} of "plugins" needs a "name"`];
  const check = new OptionChecker(`plugin ${JSON.stringify(name)}`);
  const hookLike = Object.keys(rest).filter((key) => /^(on|around)[A-Z]/.test(key));
  check.unknownOptions(Object.fromEntries(hookLike.map((key) => [key, true])), HOOKS);
  for (const hook of HOOKS) check.function(hook, (plugin as Partial<Plugin>)[hook]);
  if (after !== undefined && !Array.isArray(after)) check.problem('"after" must be a list of plugin names');
  return check.problems;
}
