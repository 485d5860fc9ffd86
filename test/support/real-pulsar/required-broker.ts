// What global set-up and tests tell each other: the broker that was found, and whether one must be.
import type { PulsarAddress } from './broker-up.js';

declare module 'vitest' {
  export interface ProvidedContext {
    readonly pulsar: ProvidedPulsar;
  }
}

export interface ProvidedPulsar {
  readonly address: PulsarAddress | undefined;
  /** Which broker it is, or why there is none. */
  readonly origin: string;
  /** Why tests cannot start a broker of their own; undefined where they can. */
  readonly cannotStart: string | undefined;
}

/** The gate sets PULSEWORK_REQUIRE_BROKER=1: what is missing there is a failure, elsewhere a reason to skip. */
export function requireBroker(missing: string | undefined): void {
  if (missing === undefined || process.env['PULSEWORK_REQUIRE_BROKER'] !== '1') return;
  throw new Error(`PULSEWORK_REQUIRE_BROKER is set, but ${missing}`);
}
