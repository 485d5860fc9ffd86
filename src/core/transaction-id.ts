// The name of a transaction: which coordinator gave it, and its number there.

/** 64 bits each, as in Pulsar's protocol (T-06: the number of the coordinator and a number that it counts). */
export interface TransactionId {
  /** The number of the coordinator. */
  readonly mostBits: bigint;
  /** What it counted. */
  readonly leastBits: bigint;
}

/** `<most>_<least>`, unsigned: how records and participants name it (T-32). Two ids are the same when their keys are. */
export function transactionKey({ mostBits, leastBits }: TransactionId): string {
  return `${BigInt.asUintN(64, mostBits)}_${BigInt.asUintN(64, leastBits)}`;
}

/** `(most,least)`, unsigned, as Pulsar writes it in messages. */
export function transactionText({ mostBits, leastBits }: TransactionId): string {
  return `(${BigInt.asUintN(64, mostBits)},${BigInt.asUintN(64, leastBits)})`;
}
