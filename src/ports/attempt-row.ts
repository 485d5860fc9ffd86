// An attempt record as the tables of databases keep it: one form for all of them.
import type { AttemptRecord } from './attempt-store.js';

/** @param row with the columns `state`, `attempts`, `deaths` and `not_before_ms`. */
export function attemptOfRow(row: Readonly<Record<string, unknown>>): AttemptRecord {
  const notBeforeMs = row['not_before_ms'];
  return {
    attempts: Number(row['attempts']),
    notBeforeMs: typeof notBeforeMs === 'number' ? notBeforeMs : undefined,
    suspect: row['state'] === 'suspect',
    deaths: Number(row['deaths']),
  };
}
