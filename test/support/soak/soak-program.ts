// A soak in a process of its own: argument 1 has the settings as JSON; standard output gets the result as JSON, standard
// error a line now and then. It does not exit: what is left over keeps the process, and whoever started it notices.
import { runSoak } from './soak-run.js';
import type { SoakSettings } from './soak-settings.js';

const TELL_EVERY_MS = 20_000;

const settings = JSON.parse(process.argv[2] ?? '') as SoakSettings;
let toldMs = 0;
const result = await runSoak(settings, (line) => {
  if (performance.now() - toldMs < TELL_EVERY_MS) return;
  toldMs = performance.now();
  console.error(`soak: ${line}`);
});
console.log(JSON.stringify(result));
