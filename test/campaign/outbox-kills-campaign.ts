// `outbox-kills`: two processes that relay an outbox in a real PostgreSQL are killed by `kill -9`: no message is lost, each key
// keeps the order of its commits, and a broker that deduplicates (every other run) has each message once.
import pg from 'pg';
import { runOutboxKills } from '../support/outbox-kills/outbox-kills.js';
import type { OutboxKillsTotals } from '../support/outbox-kills/outbox-kills.js';
import { PostgresServer, postgresMissing } from '../support/postgres/postgres-server.js';
import type { Campaign } from './campaign.js';

const KILLS = 10;

class OutboxKillsCampaign implements Campaign {
  readonly name = 'outbox-kills';
  readonly says = 'two processes that relay an outbox in PostgreSQL are killed: nothing is lost, keys keep their order';
  readonly defaultRuns = 30;
  readonly runLimitMs = 120_000;
  readonly #totals: OutboxKillsTotals = { committed: 0, rolledBack: 0, kills: 0, repeats: 0 };
  #server: PostgresServer | undefined;

  async setUp(): Promise<string | undefined> {
    const missing = postgresMissing();
    if (missing === undefined) this.#server = await PostgresServer.start();
    return missing;
  }

  summary(): string {
    const { committed, rolledBack, kills, repeats } = this.#totals;
    return `${committed} messages, ${rolledBack} transactions rolled back, ${kills} kills, ${repeats} repeats without deduplication`;
  }

  async run(seed: number): Promise<readonly string[]> {
    if (this.#server === undefined) throw new Error('outbox-kills is not set up');
    const { url } = this.#server;
    const pool = new pg.Pool({ connectionString: url });
    try {
      return await runOutboxKills(seed, KILLS, { url, schema: `run_${seed}`, pool }, this.#totals);
    } finally {
      await pool.end();
    }
  }

  async tearDown(): Promise<void> {
    await this.#server?.stop();
  }
}

export const outboxKillsCampaign: Campaign = new OutboxKillsCampaign();
