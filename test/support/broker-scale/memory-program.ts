// Prints one line of JSON: bytes per message of a backlog, by what the messages wait for. A program of its own, so that
// nothing else is in memory. Argument: how many messages.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { backlogBytesPerMessage } from '../../bench/broker-memory.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const count = Number(process.argv[2]);
const bytes: Record<string, number> = {};
for (const kind of ['waits', 'is parked until its time'] as const) {
  bytes[kind] = await backlogBytesPerMessage(kind, count, collect);
}
console.log(JSON.stringify(bytes));
process.exit();
