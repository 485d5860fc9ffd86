// The text of an attempt file: a line that names the format, then one line per change. Each line holds a record whole, so the
// last one of a key is what counts, and a file can be rewritten with one line per record.
import type { AttemptState, StoredAttempt } from '../../core/attempt-records.js';
import { PulseworkError } from '../../core/errors.js';

const FORMAT = 'pulsework-attempts';
const VERSION = 1;
export const HEADER = `${FORMAT} ${VERSION}\n`;

/** `state attempts deaths notBefore "key"`, or `deleted "key"`. */
const RECORD = /^(open|alone|closed|suspect) (\d{1,15}) (\d{1,15}) (-|\d{1,16}) (".*")$/;
const DELETED = /^deleted (".*")$/;

export function attemptLine(key: string, stored: StoredAttempt | undefined): string {
  if (stored === undefined) return `deleted ${JSON.stringify(key)}\n`;
  const { state, attempts, deaths, notBeforeMs } = stored;
  const notBefore = notBeforeMs === undefined ? '-' : String(Math.max(0, Math.ceil(notBeforeMs)));
  return `${state} ${attempts} ${deaths} ${notBefore} ${JSON.stringify(key)}\n`;
}

/**
 * What the lines say together, the longest untouched first. What follows the last newline was torn by the death of its
 * process and is left out: nobody was told that it is written.
 * @throws PulseworkError STORE_FORMAT_UNKNOWN
 */
export function parseAttempts(text: string, path: string): Map<string, StoredAttempt> {
  const records = new Map<string, StoredAttempt>();
  if (text === '') return records;
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n');
  checkHeader(lines[0] ?? '', path);
  for (let at = 1; at < lines.length - 1; at++) {
    const line = lines[at] ?? '';
    const parsed = parseLine(line);
    if (parsed === undefined) throw unknownFormat(path, `its line ${at + 1} cannot be read`);
    const [key, stored] = parsed;
    records.delete(key);
    if (stored !== undefined) records.set(key, stored);
  }
  return records;
}

function checkHeader(line: string, path: string): void {
  const [format, version] = line.split(' ');
  if (format !== FORMAT) throw unknownFormat(path, 'it is not an attempt store');
  if (version !== String(VERSION))
    throw unknownFormat(path, `it has version ${version ?? 'unknown'}, this program reads version ${VERSION}`);
}

function parseLine(line: string): [key: string, stored: StoredAttempt | undefined] | undefined {
  const deleted = DELETED.exec(line);
  const record = RECORD.exec(line);
  const key = parseKey(deleted?.[1] ?? record?.[5] ?? '');
  if (key === undefined) return undefined;
  if (record === null) return [key, undefined];
  const [, state, attempts, deaths, notBefore] = record;
  const notBeforeMs = notBefore === '-' ? undefined : Number(notBefore);
  return [key, { state: state as AttemptState, attempts: Number(attempts), deaths: Number(deaths), notBeforeMs }];
}

function parseKey(json: string): string | undefined {
  try {
    return JSON.parse(json) as string;
  } catch {
    return undefined;
  }
}

function unknownFormat(path: string, rule: string): PulseworkError {
  const remedy = 'use another path, or move the file away to start without what it knows';
  return new PulseworkError('STORE_FORMAT_UNKNOWN', `attempt store ${JSON.stringify(path)}: ${rule}; ${remedy}`);
}
