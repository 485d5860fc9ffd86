// The database of the example: a schema of its own in the PostgreSQL that POSTGRES_URL names, gone at the end.
import { randomUUID } from 'node:crypto';
import pg from 'pg';

const url = process.env['POSTGRES_URL'] ?? '';
if (url === '') {
  console.error(
    'this example needs a PostgreSQL: set POSTGRES_URL, e.g. postgres://postgres:secret@localhost:5432/postgres',
  );
  process.exit(1);
}

const run = randomUUID().slice(0, 8);
/** Of the service. */
export const schema = `example_${run}`;
/** Of Pulsework: its tables are never among those of others. */
export const pulseworkSchema = `example_${run}_pulsework`;
export const pool = new pg.Pool({ connectionString: url, options: `-c search_path=${schema}` });

export async function makeTables(): Promise<void> {
  await pool.query(`CREATE SCHEMA ${schema};
    CREATE TABLE ${schema}.placed (id text PRIMARY KEY, customer text, cents int);
    CREATE TABLE ${schema}.charge (order_id text, cents int);`);
}

export async function dropTables(): Promise<void> {
  await pool.query(`DROP SCHEMA ${schema} CASCADE; DROP SCHEMA ${pulseworkSchema} CASCADE`);
  await pool.end();
}
