// `npm run build`: an empty dist, then the compiler. Nothing else takes part in what is published. Types are not checked
// again here: `npm test` and `npm run check` do that for the whole repository.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { EMIT, ROOT, runStep } from './step.mjs';

await rm(join(ROOT, 'dist'), { recursive: true, force: true });
if (!(await runStep('build', EMIT))) process.exitCode = 1;
