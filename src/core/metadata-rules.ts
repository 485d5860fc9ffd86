// What all metadata stores answer alike: what is a path, which of two names comes first, the path of the n-th entry of a
// sequence, which arguments are refused, and what is said when a version is not the expected one.
import { ConfigurationError, PulseworkError, describeValue } from './errors.js';

/** Given as an expected version: there must be no such entry. */
export const NO_ENTRY = -1;

/** Under which key an entry is found in which index. */
interface IndexKey {
  readonly index: string;
  readonly key: string;
}

/** Numbers of a sequence have so many digits: as texts they stand in the order in which they were given. */
const SEQUENCE_DIGITS = 20;
/** Of a path, an index or a key, in UTF-16 units: what is longer is content, not a name. */
const MAX_NAME_LENGTH = 4_096;

/**
 * Components of at least one character, each after a `/`; any characters but NUL. What stands between `/` may hold names
 * of others only where these are encoded.
 * @throws ConfigurationError
 */
export function checkMetadataPath(path: string): void {
  if (!isName(path) || !/^(\/[^/]+)+$/.test(path))
    throw new ConfigurationError([`a metadata path must look like "/folder/name", got ${describeValue(path)}`]);
}

/** A bound of a range, the name of an index or a key in one: any text without NUL. @throws ConfigurationError */
export function checkMetadataName(what: string, name: string): void {
  if (!isName(name))
    throw new ConfigurationError([
      `${what} must be a text of at most ${MAX_NAME_LENGTH} characters without NUL, got ${describeValue(name)}`,
    ]);
}

/** Half a surrogate pair has no bytes: two such names would be one in a store that keeps bytes. */
function isName(name: unknown): name is string {
  return typeof name === 'string' && name.length <= MAX_NAME_LENGTH && !name.includes('\0') && !hasLoneSurrogate(name);
}

function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}

/** From here on the order of UTF-16 units is not that of code points: surrogates stand for those above all others. */
const HIGH_UNIT = /[\ud800-\uffff]/;

/** Below 0 when `a` comes first: by code point, which is the order of UTF-8 bytes. */
export function compareMetadataNames(a: string, b: string): number {
  if (a === b) return 0;
  // Only two such names can be out of order; all others the engine compares many times faster.
  if (!HIGH_UNIT.test(a) || !HIGH_UNIT.test(b)) return a < b ? -1 : 1;
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const [left, right] = [a.charCodeAt(at), b.charCodeAt(at)];
    if (left !== right) return codePointRank(left) - codePointRank(right);
  }
  return a.length - b.length;
}

function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x1_0000 : unit;
}

/** The path of the entry that got `number` in the sequence `prefix`. */
export function sequencePath(prefix: string, number: number): string {
  return `${prefix}-${String(number).padStart(SEQUENCE_DIGITS, '0')}`;
}

/** What a write is given. @throws ConfigurationError */
export function checkMetadataWrite(path: string, value: Uint8Array, indexes: readonly IndexKey[] = []): void {
  checkMetadataPath(path);
  if (!(value instanceof Uint8Array))
    throw new ConfigurationError([`the value of ${path} must be a Uint8Array, got ${describeValue(value)}`]);
  for (const { index, key } of indexes) {
    checkMetadataName('an index', index);
    checkMetadataName('a key', key);
  }
}

/** Bounds by their names, and `limit`. @throws ConfigurationError */
export function checkMetadataRange({ limit, ...names }: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(names))
    if (value !== undefined) checkMetadataName(JSON.stringify(name), value as string);
  if (names['key'] !== undefined && (names['from'] ?? names['to']) !== undefined)
    throw new ConfigurationError(['a range has either "key" or "from" and "to", not both']);
  if (limit !== undefined && !(Number.isSafeInteger(limit) && (limit as number) >= 1))
    throw new ConfigurationError([`"limit" must be a positive integer, got ${describeValue(limit)}`]);
}

/** Of one entry each pair once, however often it is given. */
export function distinctIndexKeys(indexes: readonly IndexKey[] = []): readonly IndexKey[] {
  return indexes.filter(
    ({ index, key }, at) => indexes.findIndex((other) => other.index === index && other.key === key) === at,
  );
}

/** @param found its version, undefined when there is no such entry. @throws PulseworkError STORE_VERSION_CONFLICT */
export function checkExpectedVersion(path: string, expected: number | undefined, found: number | undefined): void {
  if (expected === undefined || expected === (found ?? NO_ENTRY)) return;
  const wanted = expected === NO_ENTRY ? 'no entry' : `version ${expected}`;
  const is = found === undefined ? 'there is none' : `it has version ${found}`;
  throw new PulseworkError(
    'STORE_VERSION_CONFLICT',
    `metadata entry ${JSON.stringify(path)}: ${wanted} was expected, ${is}; read it again`,
  );
}

/** The name in `path` that stands directly below `above`, which ends in a slash. */
export function nameBelow(above: string, path: string): string {
  const end = path.indexOf('/', above.length);
  return path.slice(above.length, end === -1 ? undefined : end);
}
