// What global set-up and tests tell each other: the PostgreSQL that was found, and whether one must be.

declare module 'vitest' {
  export interface ProvidedContext {
    readonly postgres: ProvidedPostgres;
  }
}

export interface ProvidedPostgres {
  /** undefined where there is none. */
  readonly url: string | undefined;
  /** Why there is none. */
  readonly missing: string | undefined;
}

/** The gate sets PULSEWORK_REQUIRE_POSTGRES=1: what is missing there is a failure, elsewhere a reason to skip. */
export function requirePostgres(missing: string | undefined): void {
  if (missing === undefined || process.env['PULSEWORK_REQUIRE_POSTGRES'] !== '1') return;
  throw new Error(`PULSEWORK_REQUIRE_POSTGRES is set, but ${missing}`);
}
