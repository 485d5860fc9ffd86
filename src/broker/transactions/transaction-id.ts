// The name of a transaction: which coordinator gave it, and its number there.
import { PulseworkError, describeValue } from '../../core/errors.js';

/** 64 bits each, unsigned, as in Pulsar's protocol (T-06: the number of the coordinator and a number that it counts). */
export interface TransactionId {
  /** The number of the coordinator. */
  readonly mostBits: bigint;
  /** What it counted. */
  readonly leastBits: bigint;
}

const MAX_BITS = 2n ** 64n - 1n;

/** `<most>_<least>`: how records and participants name it (T-32). Two ids are the same when their keys are. */
export function transactionKey({ mostBits, leastBits }: TransactionId): string {
  return `${BigInt.asUintN(64, mostBits)}_${BigInt.asUintN(64, leastBits)}`;
}

/** Reads what `transactionKey` wrote. @throws PulseworkError STORE_FORMAT_UNKNOWN for anything else. */
export function parseTransactionKey(key: string): TransactionId {
  const match = /^(0|[1-9]\d*)_(0|[1-9]\d*)$/.exec(key);
  const [mostBits, leastBits] = [BigInt(match?.[1] ?? -1), BigInt(match?.[2] ?? -1)];
  if (match === null || mostBits > MAX_BITS || leastBits > MAX_BITS) {
    throw new PulseworkError('STORE_FORMAT_UNKNOWN', `a transaction must be <most>_<least>, got ${describeValue(key)}`);
  }
  return { mostBits, leastBits };
}

/** `(most,least)`, as Pulsar writes it in messages. */
export function transactionText({ mostBits, leastBits }: TransactionId): string {
  return `(${BigInt.asUintN(64, mostBits)},${BigInt.asUintN(64, leastBits)})`;
}
