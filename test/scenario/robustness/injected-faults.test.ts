// A broker that is unkind at random: deliveries lost, late and doubled, connections that end, publishes that fail before or
// after storing, receipts that are late. Whatever comes, each message is handled or given up, nothing is left over, and
// with `ordering: 'key'` no message starts before the earlier ones of its key are done. A sample of the campaign `faults`.
import { expect, it } from 'vitest';
import { FAULT_SHAPES, runFaultProgram } from '../../support/fault-program.js';

it.each(FAULT_SHAPES.map((shape, at) => ({ ...shape, seed: at + 1 })))(
  'an unkind broker loses nothing: $type, ordering $ordering, retry topic $retryTopic',
  { timeout: 60_000 },
  async ({ seed, ...shape }) => {
    const { violations, counts } = await runFaultProgram(seed, shape);

    expect(violations).toEqual([]);
    expect(Object.entries(counts).filter(([, count]) => count === 0)).toEqual([]);
  },
);
