// The options of the stores in PostgreSQL, checked and completed.
import { OptionChecker } from '../../core/options.js';
import { CLOCK_METHODS } from '../../ports/clock.js';
import type { Clock } from '../../ports/clock.js';
import type { PostgresPool } from './postgres-client.js';
import { PostgresDatabase } from './postgres-database.js';

export interface PostgresStoreOptions {
  /** A `Pool` of `pg`: yours, opened and closed by you. */
  readonly pool: PostgresPool;
  /**
   * Where the tables of Pulsework are, and nothing else. Made where it is missing. Stores with the same schema share them.
   * @default pulsework
   */
  readonly schema?: string | undefined;
  /** @default the clock of the system */
  readonly clock?: Clock | undefined;
}

export interface PostgresAttemptOptions extends PostgresStoreOptions {
  /**
   * Beyond it the longest untouched records are forgotten, and their counts are lower bounds again. Of all processes
   * together. @default 100,000
   */
  readonly maxRecords?: number | undefined;
}

export interface PostgresOutboxOptions extends PostgresStoreOptions {
  /**
   * Whether each transaction that adds messages wakes the relay when it commits (NOTIFY). PostgreSQL lets commits that notify
   * pass one after the other: at thousands of them a second, set `false`, and messages wait up to a second. @default true
   */
  readonly notify?: boolean | undefined;
}

const DEFAULT_SCHEMA = 'pulsework';
const DEFAULT_MAX_RECORDS = 100_000;
/** PostgreSQL cuts off what is longer. */
const MAX_NAME_BYTES = 63;

export interface PostgresSettings {
  readonly database: PostgresDatabase;
  readonly schema: string;
  readonly clock: Clock;
}

/** @throws ConfigurationError naming every problem. */
export function resolvePostgresOptions(
  subject: string,
  options: PostgresStoreOptions,
  systemClock: Clock,
): PostgresSettings {
  checkOptions(new OptionChecker(subject), options, []);
  const { pool, schema = DEFAULT_SCHEMA, clock = systemClock } = options;
  return { database: new PostgresDatabase({ pool, schema, clock }), schema, clock };
}

/** @throws ConfigurationError naming every problem. */
export function resolvePostgresAttemptOptions(
  options: PostgresAttemptOptions,
  systemClock: Clock,
): PostgresSettings & { readonly maxRecords: number } {
  const check = new OptionChecker('postgresAttemptStore');
  checkOptions(check, options, ['maxRecords']);
  const { pool, schema = DEFAULT_SCHEMA, clock = systemClock, maxRecords = DEFAULT_MAX_RECORDS } = options;
  return { database: new PostgresDatabase({ pool, schema, clock }), schema, clock, maxRecords };
}

/** @throws ConfigurationError naming every problem. */
export function resolvePostgresOutboxOptions(
  options: PostgresOutboxOptions,
  systemClock: Clock,
): PostgresSettings & { readonly notifies: boolean } {
  const check = new OptionChecker('postgresOutbox');
  check.boolean('notify', (options as PostgresOutboxOptions | undefined)?.notify);
  checkOptions(check, options, ['notify']);
  const { pool, schema = DEFAULT_SCHEMA, clock = systemClock, notify = true } = options;
  return { database: new PostgresDatabase({ pool, schema, clock }), schema, clock, notifies: notify };
}

function checkOptions(check: OptionChecker, options: PostgresAttemptOptions, more: readonly string[]): void {
  if (check.object('options', options, '{ pool }')) {
    check.required(options, { pool: 'a Pool of pg' });
    check.unknownOptions(options, ['pool', 'schema', 'clock', ...more]);
    check.methods('pool', options.pool, ['connect', 'query'], 'a Pool of pg');
    checkSchema(check, options.schema);
    check.positiveInteger('maxRecords', options.maxRecords);
    check.methods('clock', options.clock, CLOCK_METHODS, 'e.g. a FakeClock');
  }
  check.throwIfAny();
}

function checkSchema(check: OptionChecker, schema: string | undefined): void {
  check.nonEmptyString('schema', schema);
  if (typeof schema !== 'string') return;
  if (Buffer.byteLength(schema) > MAX_NAME_BYTES || schema.includes('\0'))
    check.problem(`"schema" must be a name of at most ${MAX_NAME_BYTES} bytes without NUL`);
}
