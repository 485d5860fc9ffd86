// A process that claims idempotency keys in a race with others: all of them at once, in the same order, when it is told to go.
// Arguments: the place of the store as JSON, its name, how many keys there are, and with how many it is content.
import { once } from 'node:events';
import type { StorePlace } from './store-places.js';
import { idempotencyStoreAt } from './store-places.js';

const AT_ONCE = 16;
const [place = '', name = '', keys = '', enough = ''] = process.argv.slice(2);
const store = idempotencyStoreAt(JSON.parse(place) as StorePlace);
// It is open, and connected, before the race.
await store.claim(`of ${name}`, name, { nowMs: 0, leaseMs: 60_000 });
console.log('ready');
await once(process.stdin, 'data');

const won: number[] = [];
let next = 0;
async function claimAll(): Promise<void> {
  while (next < Number(keys) && won.length < Number(enough)) {
    const number = next++;
    const { kind } = await store.claim(`key ${number}`, `${name} ${number}`, { nowMs: 0, leaseMs: 60_000 });
    if (kind === 'claimed') won.push(number);
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, claimAll));
console.log(JSON.stringify(won.sort((one, other) => one - other)));
process.stdin.destroy();
