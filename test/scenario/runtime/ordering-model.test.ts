// A sample of the campaign `ordering-model`: random interleavings of all that can happen to the messages of a key, and those in
// which something was wrong once.
import { describe, expect, it } from 'vitest';
import { programOf } from '../../support/ordering-model/generator.js';
import { explained, runModel } from '../../support/ordering-model/ordering-model.js';
import type { Program } from '../../support/ordering-model/program.js';
import { MODES } from '../../support/ordering-model/program.js';
import { REGRESSIONS } from '../../support/ordering-model/regressions.js';

/** Each the first of ten. */
const SEEDS = [20_261_130, 20_261_140, 20_261_150, 20_261_160];

async function violationsOf(program: Program): Promise<readonly string[]> {
  return explained(program, (await runModel(program)).violations);
}

describe.each(MODES)('in the mode %s', (mode) => {
  it.each(SEEDS)(
    'the order of each key is kept, nothing is lost and nothing is stuck, from seed %i on',
    async (first) => {
      for (let seed = first; seed < first + 10; seed++)
        expect(await violationsOf(programOf(seed, mode)), `seed ${seed}`).toEqual([]);
    },
  );
});

describe('what was wrong once', () => {
  it.each(REGRESSIONS)('$title', async ({ program }) => {
    expect(await violationsOf(program)).toEqual([]);
  });
});
