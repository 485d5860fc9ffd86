// What a soak is told, and what it tells.

/** Faults built in on purpose, to see that each is found. */
export type Leak = 'heap' | 'span' | 'timer' | 'callback' | 'runtime' | 'message';

export interface SoakSettings {
  readonly seed: number;
  readonly durationMs: number;
  /** One of the two runtimes is drained, or closed, and started again. */
  readonly restartEveryMs: number;
  /** So often everything is let end, looked at, and memory measured. */
  readonly checkEveryMs: number;
  /** Messages on their way end within it, or are lost. */
  readonly quietLimitMs: number;
  /** A share of the heap, and bytes below which growth is noise. */
  readonly maxGrowth: number;
  readonly slackBytes: number;
  readonly leaks: readonly Leak[];
}

export interface SoakFacts {
  readonly messages: number;
  readonly repeated: number;
  readonly restarts: number;
  readonly spans: number;
  readonly logLines: number;
  /** Times that metrics were read, and the series that the last one gave. */
  readonly collections: number;
  readonly series: number;
  readonly samples: number;
  readonly firstHeapBytes: number;
  readonly lastHeapBytes: number;
  /** After warm-up, as a share. */
  readonly heapGrowth: number;
}

export interface SoakResult {
  readonly violations: readonly string[];
  readonly facts: SoakFacts;
}
