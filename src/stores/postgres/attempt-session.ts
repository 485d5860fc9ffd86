// The one connection of an attempt store, which is this process in the eyes of others: while it stands they take what runs here
// for alive. When it breaks another one is made at once, and takes over what runs.
import type { Clock, Timer } from '../../ports/clock.js';
import { PulseworkError } from '../../core/errors.js';
import type { AttemptStatements } from './attempt-statements.js';
import type { PostgresClient } from './postgres-client.js';
import type { PostgresDatabase } from './postgres-database.js';

/** A connection whose other end is silent is given up: its machine may be gone. */
const ANSWER_TIMEOUT_MS = 20_000;
/** Between two tries to connect again. */
const AGAIN_MS = 1_000;

/**
 * A record must survive this process, not the server: it is not waited for until it is on the disk. The server learns within
 * half a minute that this machine is gone, and does not end what is idle.
 */
const SETTINGS = `
  SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
  SET synchronous_commit = off;
  SELECT set_config(name, value, false) FROM pg_catalog.pg_settings JOIN (VALUES ('tcp_keepalives_idle', '10'),
    ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'), ('idle_session_timeout', '0')) AS wanted (name, value) USING (name)`;

/** A connection and the number under which it stands for this process. */
interface Standing {
  readonly client: PostgresClient;
  readonly processNumber: number;
  isLost: boolean;
}

export class AttemptSession {
  readonly #database: PostgresDatabase;
  readonly #statements: AttemptStatements;
  readonly #clock: Clock;
  #standing: Standing | undefined;
  #connecting: Promise<Standing> | undefined;
  /** The number of the connection before. */
  #earlier: number | undefined;
  #again: Timer | undefined;
  #isClosed = false;

  constructor(database: PostgresDatabase, statements: AttemptStatements, clock: Clock) {
    this.#database = database;
    this.#statements = statements;
    this.#clock = clock;
  }

  /** @throws PulseworkError STORE_* */
  async open(): Promise<void> {
    await this.#stand();
  }

  /** `act` may be called twice: again where the connection broke meanwhile. @throws PulseworkError STORE_* */
  async run<T>(doing: string, act: (client: PostgresClient, processNumber: number) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      const standing = await this.#stand();
      try {
        return await this.#answered(standing, () => act(standing.client, standing.processNumber));
      } catch (error) {
        const failed = this.#database.failed(doing, error);
        // A server that ends says so before the connection breaks.
        if (failed.code === 'STORE_UNREACHABLE') this.#lost(standing);
        if (!standing.isLost || tries > 1) throw failed;
      }
    }
  }

  /** Nothing is done on it any more. */
  close(): void {
    this.#isClosed = true;
    this.#again?.cancel();
    if (this.#standing !== undefined) this.#leave(this.#standing);
  }

  #stand(): Promise<Standing> {
    if (this.#standing !== undefined) return Promise.resolve(this.#standing);
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  async #connect(): Promise<Standing> {
    const client = await this.#database.connect('connecting');
    const standing: Standing = { client, processNumber: 0, isLost: false };
    client.on('error', () => this.#lost(standing));
    try {
      const processNumber = await this.#answered(standing, async () => {
        await client.query(SETTINGS);
        const number = await this.#statements.newProcess(client);
        if (this.#earlier !== undefined) await this.#statements.moveRunning(client, this.#earlier, number);
        return number;
      });
      this.#earlier = processNumber;
      this.#standing = Object.assign(standing, { processNumber });
    } catch (error) {
      this.#leave(standing);
      throw this.#database.failed('connecting', error);
    }
    if (this.#isClosed) this.#leave(standing);
    return standing;
  }

  /** Connects again without being asked: what runs here for long must not be taken for dead. */
  #lost(standing: Standing): void {
    if (standing.isLost) return;
    this.#leave(standing);
    this.#connectAgain();
  }

  #connectAgain(): void {
    if (this.#isClosed || this.#earlier === undefined) return;
    this.#stand().catch(() => {
      this.#again?.cancel();
      this.#again = this.#clock.setTimer(AGAIN_MS, () => this.#connectAgain());
    });
  }

  /** Closed and not given back: its settings and its locks are for nobody else. */
  #leave(standing: Standing): void {
    if (standing.isLost) return;
    standing.isLost = true;
    if (this.#standing === standing) this.#standing = undefined;
    standing.client.release(true);
  }

  async #answered<T>(standing: Standing, act: () => Promise<T>): Promise<T> {
    let timer: Timer | undefined;
    const silent = new Promise<never>((_resolve, reject) => {
      timer = this.#clock.setTimer(ANSWER_TIMEOUT_MS, () => {
        this.#lost(standing);
        const rule = `the server gave no answer within ${ANSWER_TIMEOUT_MS} ms`;
        reject(new PulseworkError('STORE_UNREACHABLE', `store "${this.#database.name}": ${rule}`));
      });
    });
    try {
      return await Promise.race([act(), silent]);
    } finally {
      timer?.cancel();
    }
  }
}
