// The statements of one connection, each prepared with its first use: preparing costs more than most of them take, and a connection
// of the user's may need only a few.
import type { SqliteConnection, SqliteStatement } from './sqlite-driver.js';

/** @returns gives the statement of a text, the same one each time. */
export function preparedStatements(connection: SqliteConnection): (sql: string) => SqliteStatement {
  const prepared = new Map<string, SqliteStatement>();
  return (sql) => {
    const known = prepared.get(sql);
    if (known !== undefined) return known;
    const statement = connection.prepare(sql);
    prepared.set(sql, statement);
    return statement;
  };
}
