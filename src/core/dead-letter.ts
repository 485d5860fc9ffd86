// What a dead letter carries: the original message whole, where it came from, and why it failed.
// Pure: the DeadLetterPublisher sends what `deadLetterMessage` makes.
import {
  causeChain,
  cutStack,
  cutText,
  errorMessage,
  errorName,
  errorStack,
  failureFingerprint,
} from './failure-report.js';
import { bytesWithoutProperties, propertyBytes } from './message-bytes.js';
import type { EncodedMessage, ReceivedMessage } from './message.js';
import type { Failure } from './outcome.js';
import { copyProperties } from './properties.js';
import type { Redact } from './redaction.js';
import { redactText } from './redaction.js';
import { cutToBytes } from './text.js';
import { VERSION } from './version.js';

export type DeadLetterCause = 'poison' | 'redeliveries-exhausted' | 'undecodable' | 'publish-refused' | 'process-died';

export interface DeadLetterFacts {
  /** Full name of the topic it came from first, without a partition. */
  readonly originTopic: string;
  /** Its id there, in Java's form (D-12). */
  readonly originId: string;
  readonly cause: DeadLetterCause;
  readonly failure: Failure;
  readonly handler: string;
  readonly subscription: string;
  /** Deliveries to the handler so far, this one included. */
  readonly attempt: number;
  /** Epoch milliseconds. */
  readonly firstFailureMs: number;
  readonly lastFailureMs: number;
  readonly host: string;
  readonly processId: number;
  readonly redact: Redact | undefined;
  /** What the broker takes for one message: payload and properties together, in bytes. */
  readonly maxMessageBytes: number;
}

/** Version of the property set below; readers should ignore properties they do not know. */
export const DEAD_LETTER_VERSION = '1';

/** Kept for people, so cut where the gain ends. */
const MAX_CAUSE_CHAIN_BYTES = 4 * 1024;

/**
 * From the least to the most important: cut in this order when the set is too large for the broker, and after them
 * the original properties, and what is in CUT_LAST.
 */
const CUT_ORDER = [
  'pulsework-stack',
  'pulsework-cause-chain',
  'pulsework-version',
  'pulsework-process-id',
  'pulsework-host',
  'pulsework-fingerprint',
  'pulsework-first-failure-time',
  'pulsework-last-failure-time',
  'pulsework-error-message',
  'pulsework-error-name',
  'pulsework-subscription',
  'pulsework-handler',
  'pulsework-reason',
  'pulsework-attempt',
] as const;

/** Cut only when even without the original properties a message at the broker's limit has no room: it must not be refused. */
const CUT_LAST = ['pulsework-dead-letter-version', 'ORIGIN_MESSAGE_ID', 'REAL_TOPIC', 'pulsework-cause'];

/** The message to publish: original payload, key, ordering key, event time and properties, and the reasons. */
export function deadLetterMessage(message: ReceivedMessage, facts: DeadLetterFacts): EncodedMessage {
  const properties = copyProperties(message.properties);
  // Set by the first dead letter or retry letter of a message and kept by later ones, as Java does (D-11).
  properties['REAL_TOPIC'] ??= facts.originTopic;
  properties['ORIGIN_MESSAGE_ID'] ??= facts.originId;
  // The reasons of an earlier dead letter are gone with it: an old stack beside a new reason would mislead.
  // oxlint-disable-next-line typescript/no-dynamic-delete -- a set without prototype, used as a map
  for (const name of CUT_ORDER) delete properties[name];
  const originals = Object.keys(properties);
  Object.assign(properties, reasonProperties(facts));
  fitInto(properties, originals, facts.maxMessageBytes - bytesWithoutProperties(message));
  const { payload, key, orderingKey, eventTimeMs } = message;
  return { payload, key, orderingKey, eventTimeMs, properties };
}

function reasonProperties(facts: DeadLetterFacts): Record<string, string> {
  const { error, reason } = facts.failure;
  const redacted = (text: string): string => redactText(text, facts.redact);
  const shown = (text: string): string => cutText(redacted(text));
  const always = {
    'pulsework-dead-letter-version': DEAD_LETTER_VERSION,
    'pulsework-cause': facts.cause,
    'pulsework-reason': shown(reason),
    'pulsework-fingerprint': shown(failureFingerprint(facts.failure)),
    'pulsework-handler': facts.handler,
    'pulsework-subscription': facts.subscription,
    'pulsework-attempt': String(facts.attempt),
    'pulsework-first-failure-time': isoTime(facts.firstFailureMs),
    'pulsework-last-failure-time': isoTime(facts.lastFailureMs),
    'pulsework-host': facts.host,
    'pulsework-process-id': String(facts.processId),
    'pulsework-version': VERSION,
  };
  if (error === undefined) return always;
  const chain = causeChain(error);
  return {
    ...always,
    'pulsework-error-name': shown(errorName(error)),
    'pulsework-error-message': shown(errorMessage(error)),
    'pulsework-stack': cutStack(redacted(errorStack(error))),
    ...(chain === '' ? {} : { 'pulsework-cause-chain': cutToBytes(redacted(chain), MAX_CAUSE_CHAIN_BYTES) }),
  };
}

/** Removes properties until all of them fit: ours from the least important end, then the original ones, last first. */
function fitInto(properties: Record<string, string>, originals: readonly string[], maxBytes: number): void {
  const sizeOf = (name: string): number => propertyBytes(name, properties[name] ?? '');
  let size = Object.keys(properties).reduce((sum, name) => sum + sizeOf(name), 0);
  const others = originals.filter((name) => !CUT_LAST.includes(name)).toReversed();
  for (const name of [...CUT_ORDER, ...others, ...CUT_LAST]) {
    if (size <= maxBytes) return;
    if (properties[name] === undefined) continue;
    size -= sizeOf(name);
    // oxlint-disable-next-line typescript/no-dynamic-delete -- a set without prototype, used as a map
    delete properties[name];
  }
}

function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString();
}
