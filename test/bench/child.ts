// One variant in a process of its own: warms up, then measures a round each time the parent asks for one.
// Arguments: the names of the benchmark and of the variant.
import { BENCHMARKS } from './catalog.js';
import type { ChildMessage } from './variant-process.js';

const [benchmarkName, variantName] = process.argv.slice(2);
const benchmark = BENCHMARKS.find(({ name }) => name === benchmarkName);
const variant = benchmark?.variants.find(({ name }) => name === variantName);
if (variant === undefined) throw new Error(`no variant ${variantName} of benchmark ${benchmarkName}`);

const tell = (message: ChildMessage): void => {
  process.send?.(message);
};

process.on('message', () => {
  // No forced collection between rounds: it also throws away compiled code, and doubles the times.
  void variant.measure().then((measurement) => tell({ measurement }));
});
for (let round = 0; round < variant.warmUpRounds; round++) await variant.measure();
tell({ ready: true });
