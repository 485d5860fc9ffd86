// The log of the wire client while a cluster is away: the first lines and then a count, however many topics there are.
import { expect, it } from 'vitest';
import type { LogFields } from '../../../src/index.js';
import { WireClient } from '../../../src/wire.js';
import { SocketClock, WireServer } from '../../support/wire-server.js';

it('a broker that goes away under a hundred subscriptions writes ten lines of each kind, and counts the others', async () => {
  const clock = new SocketClock();
  const lines: { readonly message: string; readonly fields: LogFields | undefined }[] = [];
  const log = (message: string, fields?: LogFields): void => void lines.push({ message, fields });
  const logger = { debug: () => undefined, info: log, warn: log, error: log };
  const server = await WireServer.start();
  const options = { clock, logger, random: () => 0.5, reconnectMinMs: 100, reconnectMaxMs: 1_000 };
  const client = new WireClient({ serviceUrl: server.url, ...options });
  const topics = Array.from({ length: 100 }, (_, i) => `topic-${i}`);
  for (const topic of topics) await client.subscribe({ topics: [topic], subscription: `s-${topic}` });
  await server.close();
  const counts = (): typeof lines => lines.filter(({ message }) => message.startsWith('lines like one above'));
  await clock.advanceUntil(() => counts().length >= 2);

  const again = lines.filter(({ message }) => message.endsWith('could not be attached again'));
  const lost = lines.filter(({ message }) => message === 'a connection failed or was lost');
  expect(again).toHaveLength(10);
  expect(lost.length).toBeGreaterThan(0);
  expect(lost.length).toBeLessThanOrEqual(11);
  expect(counts().map(({ fields }) => fields?.['line'])).toContain(
    'warn subscription # on # could not be attached again TransportError CONNECTION_LOST',
  );
  await client.close();
  expect(clock.pendingTimers.length).toBe(0);
});
