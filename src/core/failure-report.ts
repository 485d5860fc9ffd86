// An error as text for people: name, message, stack, chain of causes, and a fingerprint that is the same for the
// same fault. Errors are user objects: a getter that throws must not turn a dead letter into a second failure.
import { describeValue, isError } from './errors.js';
import type { Failure } from './outcome.js';
import { cutToBytes } from './text.js';

/** Deep enough for any real chain, and an end for one that refers to itself. */
const MAX_CAUSES = 10;
/**
 * In dead letters, on spans and in log lines: so much says what there is to say, and a stack of it shows the failing frames
 * of any error. A message may be megabytes long.
 */
const MAX_TEXT_BYTES = 2 * 1024;
const MAX_STACK_BYTES = 8 * 1024;

/** A reason or a message, for people. */
export function cutText(text: string): string {
  return cutToBytes(text, MAX_TEXT_BYTES);
}

export function cutStack(stack: string): string {
  return cutToBytes(stack, MAX_STACK_BYTES);
}

export function errorName(error: Error): string {
  const name = textOf(() => error.name, 'Error');
  // `class CardDeclined extends Error {}` leaves the name of its base: its own says more.
  return name === 'Error' ? textOf(() => error.constructor.name, name) || name : name;
}

export function errorMessage(error: Error): string {
  return textOf(() => error.message, '');
}

export function errorStack(error: Error): string {
  return textOf(() => error.stack, '');
}

/** `Name: message` of each cause, outermost first, joined by ` <- `; '' when there is none. */
export function causeChain(error: Error): string {
  const chain: string[] = [];
  let cause = causeOf(error);
  while (cause !== undefined && chain.length < MAX_CAUSES) {
    const inner = isError(cause) ? cause : undefined;
    chain.push(inner === undefined ? describeValue(cause) : `${errorName(inner)}: ${errorMessage(inner)}`);
    cause = inner === undefined ? undefined : causeOf(inner);
  }
  return chain.join(' <- ');
}

/**
 * Groups dead letters by fault: error name and the topmost frame of the user's own code, without line numbers, paths
 * and ids, so that it survives deploys and hosts. Without an error it is the reason, without numbers and ids.
 */
export function failureFingerprint(failure: Failure): string {
  const { error, reason } = failure;
  if (error === undefined) return withoutNumbers(reason);
  const frame = topOwnFrame(errorStack(error));
  return frame === undefined
    ? `${errorName(error)}: ${withoutNumbers(errorMessage(error))}`
    : `${errorName(error)} at ${frame}`;
}

/** Node's own files, packages, built-in functions, and the `index 0` of `async Promise.all (index 0)`. */
const NOT_OWN = /^node:|node_modules|^<anonymous>$|^native$|^index \d+$/;

/** `function (file)` of the first frame outside Node and node_modules; undefined when the stack shows none. */
function topOwnFrame(stack: string): string | undefined {
  for (const line of stack.split('\n')) {
    const match = /^\s+at (?:async )?(?:(.*) \()?([^()]+?)(?::\d+)?(?::\d+)?\)?$/.exec(line);
    const file = match?.[2];
    if (file === undefined || NOT_OWN.test(file)) continue;
    const base = file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1).replace(/\?.*$/, '');
    return withoutNumbers(match?.[1] === undefined ? base : `${match[1]} (${base})`);
  }
  return undefined;
}

/** UUIDs, long hexadecimal ids and numbers become `#`. */
function withoutNumbers(text: string): string {
  return text
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, '#')
    .replace(/\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b/gi, '#')
    .replace(/\d+/g, '#');
}

function causeOf(error: Error): unknown {
  try {
    return error.cause;
  } catch {
    return undefined;
  }
}

function textOf(read: () => unknown, absent: string): string {
  try {
    const value = read();
    return typeof value === 'string' ? value : absent;
  } catch {
    return absent;
  }
}

/** An error as fields of a log line, cut. Its stack holds name and message already; the chain of causes is told once. */
export interface ShownError {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly stack: string;
  /** `Name: message` of each cause, outermost first. */
  readonly causes?: string;
}

/** @param shown changes each text before it is cut, to keep secrets out */
export function shownError(error: Error, shown: (text: string) => string = (text) => text): ShownError {
  const code = textOf(() => (error as { readonly code?: unknown }).code ?? '', '');
  const chain = causeChain(error);
  return {
    name: cutText(shown(errorName(error))),
    message: cutText(shown(errorMessage(error))),
    ...(code === '' ? {} : { code: cutText(code) }),
    stack: cutStack(shown(errorStack(error))),
    ...(chain === '' ? {} : { causes: cutText(shown(chain)) }),
  };
}
