// Ports for servers that must keep theirs over a restart. Taken below the range from which systems serve port 0 and
// outgoing connections, so that nothing takes one while its broker is down.
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

const FIRST = 15_000;
const LAST = 31_999;
const TRIES = 200;

/** Different ports on which nothing listens now. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const free = new Set<number>();
  for (let tried = 0; free.size < count && tried < TRIES; tried += 1) {
    const port = randomInt(FIRST, LAST + 1);
    if (await isFree(port)) free.add(port);
  }
  if (free.size < count) throw new Error(`no ${count} free ports between ${FIRST} and ${LAST} after ${TRIES} tries`);
  return [...free];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
