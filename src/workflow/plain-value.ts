// Values that are written down must come back as they were: what JSON would change without a word is refused by name.
import { describeValue, toError } from '../core/errors.js';
import { WorkflowError } from './workflow-errors.js';

/**
 * The value as it will be read back, `undefined` included.
 * @param what names it in the error, e.g. `the result of step "charge"`. @throws WorkflowError WORKFLOW_VALUE_INVALID
 */
export function plainValue(value: unknown, what: string): unknown {
  if (value === undefined) return undefined;
  const invalid = (problem: string, options?: { readonly cause: unknown }): Error =>
    new WorkflowError('WORKFLOW_VALUE_INVALID', `${what} must be plain data that survives JSON: ${problem}`, options);
  let problem: string | undefined;
  try {
    problem = problemIn(value, '', new Set());
    if (problem === undefined) return JSON.parse(JSON.stringify(value)) as unknown;
  } catch (error) {
    // A getter of the user's, or more levels than the stack has room for.
    throw invalid(`it cannot be read: ${toError(error).message}`, { cause: error });
  }
  throw invalid(problem);
}

function problemIn(value: unknown, path: string, above: ReadonlySet<object>): string | undefined {
  const place = path === '' ? 'it' : path;
  if (typeof value === 'number' && !Number.isFinite(value)) return `${place} is ${value}`;
  if (['bigint', 'symbol', 'function'].includes(typeof value)) return `${place} is a ${typeof value}`;
  if (typeof value !== 'object' || value === null) return undefined;
  if (above.has(value)) return `${place} holds itself`;
  if (isChanged(value)) return `${place} is ${describeValue(value)}`;
  const inside = new Set([...above, value]);
  // `entries` of a list has its holes too.
  for (const [name, part] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    const problem = problemInPart(part, Array.isArray(value), `${path}.${name}`, inside);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** A field that is undefined is absent afterwards, which reads the same; in a list it would become null. */
function problemInPart(part: unknown, isInList: boolean, path: string, above: ReadonlySet<object>): string | undefined {
  if (part !== undefined) return problemIn(part, path, above);
  return isInList ? `${path} is undefined` : undefined;
}

/** What has its own way into JSON, or keeps what it holds elsewhere than in fields, such as a promise that was not awaited. */
function isChanged(value: object): boolean {
  if (Array.isArray(value)) return false;
  const isOwnKind = Object.prototype.toString.call(value) !== '[object Object]';
  return isOwnKind || Symbol.iterator in value || value instanceof Error || hasOwnForm(value);
}

function hasOwnForm(value: object): boolean {
  return typeof (value as { readonly toJSON?: unknown }).toJSON === 'function';
}
