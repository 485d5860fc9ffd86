// Keeping secrets out of what people read: dead letter properties and log lines.
import { describeValue } from './errors.js';
import type { OptionChecker } from './options.js';

/** Patterns whose matches are replaced, or a function from text to text. */
export type Redact = readonly RegExp[] | ((text: string) => string);

const REPLACEMENT = '[redacted]';

/** A function that throws redacts everything: a secret must not come out because of a bug. */
export function redactText(text: string, redact: Redact | undefined): string {
  if (redact === undefined) return text;
  if (typeof redact === 'function') {
    try {
      return redact(text);
    } catch {
      return '[redaction failed]';
    }
  }
  return redact.reduce((result, pattern) => result.replace(everywhere(pattern), REPLACEMENT), text);
}

export function checkRedact(value: unknown, check: OptionChecker): void {
  if (value === undefined || typeof value === 'function') return;
  if (Array.isArray(value) && value.every((pattern) => pattern instanceof RegExp)) return;
  check.problem(`"redact" must be a list of regular expressions or a function, got ${describeValue(value)}`);
}

function everywhere(pattern: RegExp): RegExp {
  return pattern.flags.includes('g') ? pattern : new RegExp(pattern.source, `${pattern.flags}g`);
}
