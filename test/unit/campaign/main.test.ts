// `npm run campaign` as a process: what it refuses and what it prints.
import { expect, it } from 'vitest';
import { runProgram } from '../../support/run-node.js';

const campaign = (...args: string[]) => runProgram('test/campaign/main.ts', { args });

it('an unknown name is refused with the list, on standard error, with exit code 2', { timeout: 60_000 }, async () => {
  expect(await campaign('nothing')).toEqual({
    exit: 2,
    stdout: '',
    stderr: expect.stringMatching(/^unknown campaign "nothing"; campaigns are .*wire-cuts/) as string,
  });
});
