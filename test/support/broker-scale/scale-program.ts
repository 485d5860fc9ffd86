// Prints one line of JSON: the steps of each operation of the embedded broker at each number of messages. It is a program
// of its own because the counting must begin before the broker's code runs. Arguments: numbers of messages.
import { SCALE_OPERATIONS } from './scale-operations.js';
import type { OperationSteps } from './step-growth.js';
import { StepCounter } from './step-counter.js';

const counter = new StepCounter((path) => path.startsWith('src/broker/') || path.startsWith('src/core/'));
const sizes = process.argv.slice(2).map(Number);
const results: OperationSteps[] = [];
for (const operation of SCALE_OPERATIONS) {
  const { name, per } = operation;
  const steps: number[] = [];
  for (const size of sizes) steps.push(await operation.run(size, () => counter.take()));
  results.push({ name, per, sizes, steps });
}
console.log(JSON.stringify(results));
