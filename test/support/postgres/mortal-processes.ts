// Processes that are played: each has a pool of its own, and dies with all its connections, as the system closes them for it.
import type pg from 'pg';
import type { PostgresPool } from 'pulsework/postgres';
import type { PostgresPlace } from './postgres-test.js';

export class MortalProcess {
  readonly pool: PostgresPool;
  /** As the server knows it. */
  readonly name: string;
  readonly #place: PostgresPlace;
  #isKeptOff = false;

  constructor(place: PostgresPlace, name: string) {
    this.#place = place;
    this.name = `${place.schema} ${name}`;
    const pool: pg.Pool = place.newPool({ application_name: this.name });
    const alive = <T>(act: () => Promise<T>): Promise<T> =>
      this.#isKeptOff ? Promise.reject(new Error('connect ECONNREFUSED, played')) : act();
    this.pool = {
      connect: () => alive(() => pool.connect()),
      query: (text, values) => alive(() => pool.query(text, values)),
    };
  }

  /** Without another word. Resolves when the server knows. */
  die(): Promise<void> {
    return this.cutOff({ andKeepOff: true });
  }

  /** All its connections break; it lives. Resolves when the server knows. */
  async cutOff({ andKeepOff = false } = {}): Promise<void> {
    this.#isKeptOff = andKeepOff;
    const mine = 'FROM pg_stat_activity WHERE application_name = $1';
    await this.#place.pool.query(`SELECT pg_terminate_backend(pid, 5000) ${mine}`, [this.name]);
  }

  letBack(): void {
    this.#isKeptOff = false;
  }
}
