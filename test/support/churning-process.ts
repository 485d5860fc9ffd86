// A process that begins, ends and deletes records until it is killed. It tells of each begin after it resolved and of each
// end or delete before it is asked for: whatever it told to run and to nothing else was running when it died.
// Arguments: the place of the store as JSON, the path to tell to, and after how many steps to say `enough` on standard output.
import { openSync, writeSync } from 'node:fs';
import type { StorePlace } from './store-places.js';
import { attemptStoreAt } from './store-places.js';

const LANES = 8;
const [place = '', tellTo = '', steps = ''] = process.argv.slice(2);
const told = openSync(tellTo, 'w');
let left = Number(steps);
const store = attemptStoreAt(JSON.parse(place) as StorePlace);
await store.open();

/** Synchronous: a line that was told has left this process. */
function tell(word: string, key: string): void {
  writeSync(told, `${word} ${key}\n`);
  left -= 1;
  if (left === 0) console.log('enough');
}

async function churn(lane: number): Promise<never> {
  for (let n = 0; ; n++) {
    const key = `lane-${lane}-${n}`;
    await store.begin(key, { attempt: 2, alone: lane === 0 });
    tell('runs', key);
    tell('over', key);
    if (n % 2 === 0) await store.end(key, { attempts: 2 });
    else await store.delete(key);
  }
}

/** Begun once and never ended. */
async function hold(lane: number): Promise<void> {
  const key = `held-${lane}`;
  await store.begin(key, { attempt: 3, alone: false });
  tell('runs', key);
}

const lanes = Array.from({ length: LANES }, (_, lane) => lane);
await Promise.all(lanes.map(hold));
await Promise.all(lanes.map(churn));
