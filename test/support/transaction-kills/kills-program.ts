// A life of the service of `kills-life.ts`, to be killed. It tells on standard output, synchronously: what was told has left this
// process, however it ends.
import { writeSync } from 'node:fs';
import { KillsLife } from './kills-life.js';
import type { KillsSettings } from './kills-settings.js';

const STANDARD_OUTPUT = 1;

const settings = JSON.parse(process.argv[2] ?? '') as KillsSettings;
const life = new KillsLife(settings, (line) => void writeSync(STANDARD_OUTPUT, `${line}\n`));
await life.open();
const [first = ''] = settings.plan.outputs;
life.work();
await Promise.all([life.publishJobs(), life.tellAll(first)]);
await life.idle();
writeSync(STANDARD_OUTPUT, 'idle\n');
// Until it is killed.
setInterval(() => undefined, 1_000);
