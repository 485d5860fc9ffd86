// Message properties: text to text. The object has no prototype, so that a property named `__proto__`,
// `constructor` or `length` is a property like any other.
import { describeValue } from './errors.js';

export type MessageProperties = Readonly<Record<string, string>>;

/** A copy of `source` (own enumerable entries only) that later writers may extend. */
export function copyProperties(source: Readonly<Record<string, string>> | undefined): Record<string, string> {
  const copy = Object.create(null) as Record<string, string>;
  if (source !== undefined) for (const key of Object.keys(source)) copy[key] = source[key] ?? '';
  return copy;
}

export const NO_PROPERTIES: MessageProperties = Object.freeze(Object.create(null) as Record<string, string>);

/** What is wrong with properties given by a user: one sentence each. */
export function propertyProblems(properties: unknown): string[] {
  if (properties === undefined) return [];
  if (typeof properties !== 'object' || properties === null || isCollection(properties)) {
    return [`"properties" must be an object of texts, got ${describeValue(properties)}`];
  }
  return Object.entries(properties as Record<string, unknown>)
    .filter(([, value]) => typeof value !== 'string')
    .map(([key, value]) => `property ${JSON.stringify(key)} must be a text, got ${describeValue(value)}`);
}

/** What is to be put on a message and was not made here. Quicker than the problems one by one: it is asked for each message. */
export function areProperties(properties: unknown): properties is MessageProperties {
  if (typeof properties !== 'object' || properties === null || isCollection(properties)) return false;
  for (const value of Object.values(properties)) if (typeof value !== 'string') return false;
  return true;
}

/** A list, a Map, Headers: what they hold is not in their own properties, and would be lost without a word. */
function isCollection(value: object): boolean {
  return Symbol.iterator in value;
}
