// Texts as any database keeps them and compares them. Pure.

/** NUL, which some cut a text at, and halves of surrogate pairs, which UTF-8 has no bytes for. */
const NOT_KEPT = /\0|[\ud800-\udfff]/u;

/** The text itself, but for one that would not come back as it is, or is written as these are. Two never become one. */
export function storedText(text: string): string {
  return NOT_KEPT.test(text) || text.startsWith('"') ? JSON.stringify(text) : text;
}
