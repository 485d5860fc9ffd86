// Places of stores that several processes know, so that a test can tell a process which one to use.
import pg from 'pg';
import type { AttemptStore, IdempotencyStore } from 'pulsework';
import { fileAttemptStore } from 'pulsework/file';
import { postgresAttemptStore, postgresIdempotencyStore } from 'pulsework/postgres';
import { sqliteAttemptStore, sqliteIdempotencyStore } from 'pulsework/sqlite';

interface PathPlace {
  readonly kind: 'file' | 'sqlite';
  readonly path: string;
}

interface SchemaPlace {
  readonly kind: 'postgres';
  readonly url: string;
  readonly schema: string;
}

export type StorePlace = PathPlace | SchemaPlace;

export function attemptStoreAt(place: StorePlace): AttemptStore {
  switch (place.kind) {
    case 'file':
      return fileAttemptStore({ path: place.path });
    case 'sqlite':
      return sqliteAttemptStore({ path: place.path });
    case 'postgres':
      return postgresAttemptStore({ pool: poolOf(place), schema: place.schema });
  }
}

export function idempotencyStoreAt(place: StorePlace): IdempotencyStore {
  switch (place.kind) {
    case 'file':
      throw new Error('there is none in a file');
    case 'sqlite':
      return sqliteIdempotencyStore({ path: place.path });
    case 'postgres':
      return postgresIdempotencyStore({ pool: poolOf(place), schema: place.schema });
  }
}

/** Ends with its process. */
function poolOf({ url }: SchemaPlace): pg.Pool {
  return new pg.Pool({ connectionString: url, max: 8, allowExitOnIdle: true });
}
