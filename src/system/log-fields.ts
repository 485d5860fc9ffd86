// The fields of a log line as they can be written: read one by one, since one that cannot be read must not cost the others,
// and never in place of what the line itself says.
import type { LogFields } from '../ports/logger.js';

export const NOT_SHOWN = '[could not be shown]';

/** @param taken names that the line has itself; a field of such a name gets `_` at its end. */
export function readFields(fields: LogFields | undefined, taken: ReadonlySet<string>): Record<string, unknown> {
  const read = Object.create(null) as Record<string, unknown>;
  for (const name of namesOf(fields)) read[taken.has(name) ? `${name}_` : name] = valueOf(fields, name);
  return read;
}

function namesOf(fields: LogFields | undefined): readonly string[] {
  try {
    return Object.keys(fields ?? {});
  } catch {
    return [];
  }
}

function valueOf(fields: LogFields | undefined, name: string): unknown {
  try {
    return fields?.[name];
  } catch {
    return NOT_SHOWN;
  }
}
