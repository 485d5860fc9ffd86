// Options that producers and consumers have in common: what the broker shows of them, and how often the client looks for
// partitions and topics that are new.
import { describeValue } from '../../core/errors.js';
import { minutes } from '../../core/options.js';
import type { OptionChecker } from '../../core/options.js';
import type { KeyValue } from './protocol/message-metadata.js';

/** As Java's client: autoUpdatePartitionsInterval and patternAutoDiscoveryPeriod. */
export const DEFAULT_UPDATE_MS = minutes(1);
/** Brokers answer from their metadata store: asking more often than this would be a load without a use. */
const MIN_UPDATE_MS = 100;

/** An interval of at least 100 ms; 0 or false for never. */
export function checkUpdateMs(name: string, value: unknown, check: OptionChecker): void {
  if (value !== false && value !== 0) check.durationMs(name, value, { minMs: MIN_UPDATE_MS });
}

/** What the broker shows beside a producer or consumer: texts by name. */
export function checkShownProperties(value: unknown, check: OptionChecker): void {
  if (value === undefined || !check.object('properties', value)) return;
  for (const [name, text] of Object.entries(value)) {
    if (typeof text === 'string') continue;
    check.problem(`"properties" must be texts, got ${describeValue(text)} for ${JSON.stringify(name)}`);
  }
}

/** The same as a command has it; absent when there are none. */
export function shownProperties(properties: Readonly<Record<string, string>> | undefined): KeyValue[] | undefined {
  const list = Object.entries(properties ?? {}).map(([key, value]) => ({ key, value }));
  return list.length === 0 ? undefined : list;
}

/** 0 for never. */
export function updateMs(value: number | false | undefined): number {
  return value === false ? 0 : (value ?? DEFAULT_UPDATE_MS);
}
