// Keeping secrets out of what people read: dead letter properties and log lines.
import { describeValue } from './errors.js';
import type { OptionChecker } from './options.js';

/** Patterns whose matches are replaced, or a function from text to text. */
export type Redact = readonly RegExp[] | ((text: string) => string);

const REPLACEMENT = '[redacted]';
const FAILED = '[redaction failed]';

/** A function that throws or gives no text redacts everything: a secret must not come out because of a bug. */
export function redactText(text: string, redact: Redact | undefined): string {
  if (redact === undefined) return text;
  if (typeof redact === 'function') {
    try {
      const result: unknown = redact(text);
      return typeof result === 'string' ? result : FAILED;
    } catch {
      return FAILED;
    }
  }
  return redact.reduce((result, pattern) => result.replace(everywhere(pattern), REPLACEMENT), text);
}

export function checkRedact(value: unknown, check: OptionChecker): void {
  if (value === undefined || typeof value === 'function') return;
  if (Array.isArray(value) && value.every((pattern) => pattern instanceof RegExp)) return;
  check.problem(`"redact" must be a list of regular expressions or a function, got ${describeValue(value)}`);
}

/** A pattern that finds every match: with `g`, and without `y`, which would end the search at the first gap. */
function everywhere(pattern: RegExp): RegExp {
  return new RegExp(pattern.source, `${pattern.flags.replace(/[gy]/g, '')}g`);
}
