// The command line of the benchmarks: names to run (all without any) and `--json`.

export interface BenchArguments {
  readonly names: readonly string[];
  readonly json: boolean;
}

/** @throws RangeError listing every argument that is unknown, and what there is. */
export function parseArguments(args: readonly string[], known: readonly string[]): BenchArguments {
  const asked = args.filter((arg) => arg !== '--json');
  const unknown = asked.filter((arg) => !known.includes(arg));
  if (unknown.length > 0) {
    const subject = unknown.map((arg) => JSON.stringify(arg)).join(', ');
    throw new RangeError(`unknown: ${subject}; benchmarks are ${known.join(', ')}; the only option is --json`);
  }
  const names = asked.length === 0 ? known : known.filter((name) => asked.includes(name));
  return { names, json: args.includes('--json') };
}
