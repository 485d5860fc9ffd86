// What the service of `kills-program.ts` is told, and what it and its judge have in common.

/** All of it is JSON, because it is an argument. */
export interface KillsSettings {
  readonly dir: string;
  readonly seed: number;
  /** Which one it is on this folder, from 0. */
  readonly life: number;
  /** How many it publishes. */
  readonly jobs: number;
  /** It publishes nothing, works off everything, tells all that is there and ends. */
  readonly isLast: boolean;
}

export const JOBS = 'jobs';
export const RESULTS = 'results';
export const JOURNAL = 'journal';
export const WORKERS = 'workers';

/** Short, so that all of it happens in a life of seconds. */
export const SWEEPS = { sweepIntervalMs: 200, collectionIntervalMs: 200, retentionMs: 300 };
