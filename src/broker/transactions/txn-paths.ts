// Where the records of transactions lie in a metadata store, and under which keys they are found again: the layout of
// PIP-473 as merged (T-31). Names in paths and keys are URL-encoded, for they contain `://`, `/` and `:` (T-32).
//
//   /txn/id/<transaction>                               header        by deadline while OPEN, then by final state
//   /txn/op/<transaction>-<number>                      operation     by transaction, and by segment or subscription
//   /txn/segment-events/<segment>-<number>              event         by time
//   /txn/subscription-events/<segment>:<sub>-<number>   event         by time
//   /txn/segment-state/watermark/<segment>              place up to which the outcome of every entry is in effect
//   /txn/segment-state/aborted/<segment>:<transaction>  aborted there    by the place of its last entry
//   /txn/tc-seq/<coordinator>                           the last number that a coordinator gave
import { PulseworkError, describeValue } from '../../core/errors.js';
import { checkMetadataName } from '../../core/metadata-rules.js';
import type { TransactionId } from '../../core/transaction-id.js';

/** How a transaction ended. */
export type FinalState = 'COMMITTED' | 'ABORTED';

/** Names of the secondary indexes (T-33). */
export const TXN_INDEXES = {
  /** Key `segmentKey`: WRITE operations. */
  writesBySegment: 'idx:writes-by-segment',
  /** Key `subscriptionKey`: ACK operations. */
  acksBySubscription: 'idx:acks-by-segment-subscription',
  /** Key: the transaction. All operations. */
  opsByTransaction: 'idx:ops-by-txn',
  /** Key `numberKey` of created + timeout: OPEN headers. */
  openByDeadline: 'idx:txn-by-deadline',
  /** Key `finalStateKey`: headers that are not OPEN. */
  ended: 'idx:txn-by-final-state',
  /** Key `abortedKey`: for the transaction buffer. */
  abortedByPosition: 'idx:txn-aborted-by-position',
  /** Key `numberKey` of the time of publishing. Not in the merged layout, which keeps events for ever. */
  eventsByTime: 'idx:txn-event-by-time',
} as const;

const NUMBER_DIGITS = 20;
const MAX_BITS = 2n ** 64n - 1n;

/** Reads what `transactionKey` wrote. @throws PulseworkError STORE_FORMAT_UNKNOWN for anything else. */
export function parseTransactionKey(key: string): TransactionId {
  const match = /^(0|[1-9]\d*)_(0|[1-9]\d*)$/.exec(key);
  const [mostBits, leastBits] = [BigInt(match?.[1] ?? -1), BigInt(match?.[2] ?? -1)];
  if (match === null || mostBits > MAX_BITS || leastBits > MAX_BITS) {
    throw new PulseworkError('STORE_FORMAT_UNKNOWN', `a transaction must be <most>_<least>, got ${describeValue(key)}`);
  }
  return { mostBits, leastBits };
}

export function headerPath(transaction: string): string {
  return `/txn/id/${transaction}`;
}

/** Operations are appended to it: `<prefix>-<number>`. */
export function opPrefix(transaction: string): string {
  return `/txn/op/${transaction}`;
}

/** Events for whoever has the segment. */
export function segmentEventsPrefix(segment: string): string {
  return `/txn/segment-events/${segmentKey(segment)}`;
}

/** Events for whoever has the subscription on the segment. */
export function subscriptionEventsPrefix(segment: string, subscription: string): string {
  return `/txn/subscription-events/${subscriptionKey(segment, subscription)}`;
}

/** What lies directly below has the names of segments' keys. */
export const WATERMARKS = '/txn/segment-state/watermark';

export function watermarkPath(segment: string): string {
  return `${WATERMARKS}/${segmentKey(segment)}`;
}

/** What lies directly below begins with the key of a segment and `:`. */
export const ABORTED = '/txn/segment-state/aborted';

export function abortedPath(segment: string, transaction: string): string {
  return `${ABORTED}/${segmentKey(segment)}:${transaction}`;
}

export function counterPath(coordinator: number): string {
  return `/txn/tc-seq/${coordinator}`;
}

/** The transaction in the path of a header or, before the last `-`, of an operation (T-32). */
export function transactionOfPath(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const dash = name.lastIndexOf('-');
  return dash < 0 ? name : name.slice(0, dash);
}

export function segmentKey(segment: string): string {
  return urlEncoded('a segment', segment);
}

/** `<segment>:<subscription>`: encoded, neither has a `:` of its own. */
export function subscriptionKey(segment: string, subscription: string): string {
  return `${segmentKey(segment)}:${urlEncoded('a subscription', subscription)}`;
}

/** Reads what `segmentKey` wrote. */
export function parseSegmentKey(key: string): string {
  return decodeURIComponent(key.replaceAll('+', '%20'));
}

/** Reads what `subscriptionKey` wrote; undefined for the key of a segment. */
export function parseSubscriptionKey(
  key: string,
): { readonly topic: string; readonly subscription: string } | undefined {
  const [topic, subscription] = key.split(':');
  if (topic === undefined || subscription === undefined) return undefined;
  return { topic: parseSegmentKey(topic), subscription: parseSegmentKey(subscription) };
}

/** A whole number from 0 as 20 digits: as texts they stand in their own order. */
export function numberKey(value: number): string {
  return String(value).padStart(NUMBER_DIGITS, '0');
}

/** `<STATE>:<milliseconds>`. */
export function finalStateKey(state: FinalState, finalizedAtMs: number): string {
  return `${state}:${numberKey(finalizedAtMs)}`;
}

/** `<segment>:<ledger>:<entry>`: the entries of one segment stand in the order of positions. */
export function abortedKey(segment: string, ledgerId: number, entryId: number): string {
  return `${segmentKey(segment)}:${numberKey(ledgerId)}:${numberKey(entryId)}`;
}

/** Bounds of the keys that `abortedKey` gives the entries of one segment. */
export function abortedKeysOf(segment: string): { readonly from: string; readonly to: string } {
  const key = segmentKey(segment);
  // `;` is what comes after `:`.
  return { from: `${key}:`, to: `${key};` };
}

/** As Java's URLEncoder, so that records of both have the same paths. @throws ConfigurationError for what is no name. */
function urlEncoded(what: string, name: string): string {
  checkMetadataName(what, name);
  return encodeURIComponent(name)
    .replaceAll('%20', '+')
    .replace(/[!'()~]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}
