// What a benchmark is made of: variants that are measured in processes of their own, round by round in turn.

/** One round's figures by unit, e.g. `{ 'ns/message': 8123 }`. Lower is better. */
export type Measurement = Readonly<Record<string, number>>;

export interface Variant {
  readonly name: string;
  /** Rounds whose figures are thrown away, in each process. */
  readonly warmUpRounds: number;
  /** Runs in a process that runs nothing else. */
  readonly measure: () => Promise<Measurement>;
  /** The name of the variant that this one is compared with. */
  readonly baseline?: string | undefined;
  /** Report what it takes beyond its baseline, too. */
  readonly lessBaseline?: boolean | undefined;
}

export interface Benchmark {
  readonly name: string;
  /** Runs once, in the parent, before any variant. Gives the reason why the benchmark cannot run. */
  readonly prepare?: (() => Promise<string | undefined>) | undefined;
  /** Fresh processes of each variant: how code happens to be compiled and laid out differs from one to the next. */
  readonly processes: number;
  /** Measured rounds in each process. */
  readonly rounds: number;
  readonly variants: readonly Variant[];
}
