// `npm run campaign` as a process: what it refuses and what it prints.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const MAIN = fileURLToPath(new URL('../../campaign/main.ts', import.meta.url));

function campaign(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', MAIN, ...args], {
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

it('an unknown name is refused with the list, on standard error, with exit code 2', () => {
  expect(campaign('nothing')).toEqual({
    status: 2,
    stdout: '',
    stderr: expect.stringMatching(/^unknown campaign "nothing"; campaigns are .*wire-cuts/) as string,
  });
});
