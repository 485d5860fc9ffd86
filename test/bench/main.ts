// `npm run bench [-- NAME...] [--json]`: starts each variant in processes of its own, measures round by round in turn,
// and prints medians with their spread and ratios to a baseline of the same run.
import { parseArguments } from './arguments.js';
import type { BenchArguments } from './arguments.js';
import { BENCHMARKS } from './catalog.js';
import { compiledCode } from './compiled-code.js';
import type { Row } from './report.js';
import { rowsOf, tableOf } from './report.js';
import { VariantProcess } from './variant-process.js';
import type { Benchmark, Measurement } from './variant.js';

async function run({ names, json }: BenchArguments): Promise<void> {
  const root = compiledCode();
  const rows: Row[] = [];
  for (const benchmark of BENCHMARKS.filter(({ name }) => names.includes(name))) {
    // Progress goes to standard error: standard output holds the report and nothing else.
    const missing = await benchmark.prepare?.();
    if (missing !== undefined) {
      console.error(`skipped ${benchmark.name}: ${missing}`);
      continue;
    }
    console.error(`measuring ${benchmark.name}`);
    rows.push(...rowsOf(benchmark, await sample(root, benchmark)));
  }
  console.log(json ? JSON.stringify(rows, undefined, 2) : tableOf(rows));
}

async function sample(root: string, benchmark: Benchmark): Promise<Map<string, Measurement[]>> {
  const samples = new Map(benchmark.variants.map(({ name }) => [name, [] as Measurement[]]));
  for (let generation = 0; generation < benchmark.processes; generation++) {
    const children = new Map<string, VariantProcess>();
    for (const { name } of benchmark.variants)
      children.set(name, await VariantProcess.start(root, benchmark.name, name));
    for (let round = 0; round < benchmark.rounds; round++) {
      for (const [name, child] of children) samples.get(name)?.push(await child.measure());
    }
    for (const child of children.values()) await child.end();
  }
  return samples;
}

function argumentsOrExit(): BenchArguments {
  try {
    return parseArguments(
      process.argv.slice(2),
      BENCHMARKS.map(({ name }) => name),
    );
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(2);
  }
}

await run(argumentsOrExit());
