// Two processes relay one outbox on a real PostgreSQL and are killed by `kill -9` while transactions add messages: everything
// that was committed arrives, nothing that was rolled back, each key in the order of its commits, and once where the broker
// deduplicates.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { systemClock, topic } from '../../../src/index.js';
import { EmbeddedBroker, embedded } from '../../../src/embedded.js';
import { postgresOutbox } from '../../../src/postgres.js';
import { seeded } from '../seeded.js';
import { RelayProcess } from './relay-process.js';

export interface OutboxKillsPlace {
  readonly url: string;
  readonly schema: string;
  readonly pool: pg.Pool;
}

export interface OutboxKillsTotals {
  committed: number;
  rolledBack: number;
  kills: number;
  repeats: number;
}

interface Sent {
  readonly key: string;
  readonly version: number;
  readonly part: number;
  readonly tx: number;
}

const movements = topic<Sent>('movements');
const KEYS = 10;
const WRITERS = 4;
/** Long enough for a process to take over and to be in the middle of its work. */
const BETWEEN_KILLS_MS = { least: 100, more: 500 };
const EMPTY_LIMIT_MS = 30_000;

/** @returns what did not hold, a sentence each */
export async function runOutboxKills(
  seed: number,
  kills: number,
  place: OutboxKillsPlace,
  totals: OutboxKillsTotals,
): Promise<readonly string[]> {
  const random = seeded(seed);
  const deduplication = seed % 2 === 0;
  const broker = new EmbeddedBroker({ clock: systemClock, deduplication });
  const transport = embedded({ broker });
  const writing = await Writing.begin(place, random);
  const relays = await Promise.all([0, 1].map(() => RelayProcess.start(transport, place.url, place.schema)));
  try {
    const written = Promise.all(Array.from({ length: WRITERS }, () => writing.run()));
    for (let kill = 0; kill < kills; kill++) {
      await sleep(BETWEEN_KILLS_MS.least + random() * BETWEEN_KILLS_MS.more);
      const which = Math.floor(random() * relays.length);
      await relays[which]?.kill();
      relays[which] = await RelayProcess.start(transport, place.url, place.schema);
      totals.kills += 1;
    }
    writing.end();
    await written;
    if (!(await writing.isRelayed())) return ['the outbox was not empty 30 s after the last kill'];
    const expected = await writing.committed();
    const seen = await everythingOf(transport);
    totals.committed += expected.length;
    totals.rolledBack += writing.rolledBack;
    totals.repeats += seen.length - new Set(seen.map(textOf)).size;
    return violations(expected, seen, deduplication);
  } finally {
    writing.end();
    await Promise.all(relays.map((relay) => relay.kill()));
    await transport.close();
  }
}

export function violations(expected: readonly Sent[], seen: readonly Sent[], isOnce: boolean): readonly string[] {
  const found: string[] = [];
  const wanted = new Set(expected.map(textOf));
  const first = [...new Set(seen.map(textOf))];
  const strays = first.filter((text) => !wanted.has(text));
  if (strays.length > 0) found.push(`${strays.length} messages were never committed, e.g. ${strays[0]}`);
  const lost = [...wanted].filter((text) => !first.includes(text));
  if (lost.length > 0) found.push(`${lost.length} messages are lost, e.g. ${lost[0]}`);
  if (isOnce && seen.length !== first.length)
    found.push(`${seen.length - first.length} messages came twice, although the broker deduplicates`);
  for (const key of new Set(expected.map((sent) => sent.key))) {
    const order = expected.filter((sent) => sent.key === key).map(textOf);
    const came = first.filter((text) => order.includes(text));
    if (lost.length === 0 && came.join() !== order.join()) found.push(`the order of key ${key} was not kept`);
  }
  return found;
}

class Writing {
  readonly #place: OutboxKillsPlace;
  readonly #outbox;
  readonly #random: () => number;
  #ended = false;
  #transactions = 0;
  rolledBack = 0;

  private constructor(place: OutboxKillsPlace, random: () => number) {
    this.#place = place;
    this.#outbox = postgresOutbox({ pool: place.pool, schema: place.schema });
    this.#random = random;
  }

  static async begin(place: OutboxKillsPlace, random: () => number): Promise<Writing> {
    const writing = new Writing(place, random);
    await writing.#outbox.open();
    const { pool, schema } = place;
    await pool.query(`CREATE TABLE ${schema}.account (key text PRIMARY KEY, version int NOT NULL)`);
    await pool.query(`CREATE TABLE ${schema}.movement (key text, version int, parts int, tx int)`);
    await pool.query(`INSERT INTO ${schema}.account SELECT 'k' || n, 0 FROM generate_series(1, ${KEYS}) AS n`);
    return writing;
  }

  end(): void {
    this.#ended = true;
  }

  async run(): Promise<void> {
    while (!this.#ended) {
      const client = await this.#place.pool.connect();
      try {
        await this.#write(client);
      } finally {
        client.release();
      }
      await sleep(this.#random() * 5);
    }
  }

  /** Writers of a key exclude each other by the row of its account. */
  async #write(client: pg.PoolClient): Promise<void> {
    const { schema } = this.#place;
    const random = this.#random;
    const tx = ++this.#transactions;
    const key = `k${1 + Math.floor(random() * KEYS)}`;
    const parts = 1 + Math.floor(random() * 3);
    await client.query('BEGIN');
    const { rows } = await client.query<{ version: number }>(
      `UPDATE ${schema}.account SET version = version + 1 WHERE key = $1 RETURNING version`,
      [key],
    );
    const version = rows[0]?.version ?? 0;
    await client.query(`INSERT INTO ${schema}.movement VALUES ($1, $2, $3, $4)`, [key, version, parts, tx]);
    for (let part = 0; part < parts; part++)
      await this.#outbox.add(client, movements.message({ key, version, part, tx }, { key }));
    // Its ids are taken: transactions with higher ones are committed meanwhile.
    if (random() < 0.3) await sleep(random() * 60);
    const rollsBack = random() < 0.1;
    await client.query(rollsBack ? 'ROLLBACK' : 'COMMIT');
    if (rollsBack) this.rolledBack += 1;
  }

  async isRelayed(): Promise<boolean> {
    const { pool, schema } = this.#place;
    for (const untilMs = systemClock.now() + EMPTY_LIMIT_MS; systemClock.now() < untilMs; await sleep(50)) {
      const { rows } = await pool.query<{ rows: string }>(`SELECT count(*) AS rows FROM ${schema}.outbox`);
      if (rows[0]?.rows === '0') return true;
    }
    return false;
  }

  /** In the order of commits of each key. */
  async committed(): Promise<readonly Sent[]> {
    const { pool, schema } = this.#place;
    const { rows } = await pool.query<{ key: string; version: number; parts: number; tx: number }>(
      `SELECT key, version, parts, tx FROM ${schema}.movement ORDER BY key, version`,
    );
    return rows.flatMap(({ parts, ...row }) => Array.from({ length: parts }, (_, part) => ({ ...row, part })));
  }
}

async function everythingOf(transport: ReturnType<typeof embedded>): Promise<readonly Sent[]> {
  const subscription = await transport.subscribe({
    topics: ['persistent://public/default/movements'],
    subscription: 'observer',
    type: 'exclusive',
    initialPosition: 'earliest',
    prefetch: 100_000,
    consumerName: 'observer',
  });
  const seen: Sent[] = [];
  for (;;) {
    const message = await subscription.receive(AbortSignal.timeout(300));
    if (message === undefined) return seen;
    seen.push(JSON.parse(Buffer.from(message.payload ?? []).toString()) as Sent);
  }
}

function textOf({ key, version, part, tx }: Sent): string {
  return `${key}/${version}/${part}/${tx}`;
}
