// What a settlement says of failure: whether the run counts as an error, of which type, and what people may read of it.
// Errors are user objects: nothing here trusts their getters.
import type { Exception } from '@opentelemetry/api';
import { PulseworkError } from '../core/errors.js';
import { cutStack, cutText, errorMessage, errorName, errorStack } from '../core/failure-report.js';
import type { Redact } from '../core/redaction.js';
import { redactText } from '../core/redaction.js';
import { cutToBytes } from '../core/text.js';
import type { SettlementReport } from '../ports/telemetry.js';

/** Class names are short; one that is made at run time must not fill a backend's index. */
const MAX_TYPE_BYTES = 100;

/**
 * `error.type` of a run, undefined where it is no error. An outcome that carries an Error is one (thrown, or given by the
 * handler), and so is what is given up. A retry with a reason in words is the normal course of things, as is a wait that
 * a rule of `onError` made of an error.
 */
export function errorTypeOf(report: Pick<SettlementReport, 'outcome' | 'cause' | 'failure'>): string | undefined {
  const { outcome, cause, failure } = report;
  if (outcome === 'success' || outcome === 'skip' || outcome === 'defer') return undefined;
  if (failure?.error !== undefined) return typeOfError(failure.error);
  return cause ?? (outcome === 'fatal' ? outcome : undefined);
}

/** The code of an error of ours, which says more than its class; else the class. */
export function typeOfError(error: Error): string {
  try {
    if (error instanceof PulseworkError) return error.code;
  } catch {
    // A proxy whose prototype cannot be asked for.
  }
  return cutToBytes(errorName(error), MAX_TYPE_BYTES);
}

export function readableText(text: string, redact: Redact | undefined): string {
  return cutText(redactText(text, redact));
}

/** A plain object in place of the error. */
export function exceptionOf(error: Error, redact: Redact | undefined): Exception {
  return {
    name: typeOfError(error),
    message: readableText(errorMessage(error), redact),
    stack: cutStack(redactText(errorStack(error), redact)),
  };
}
