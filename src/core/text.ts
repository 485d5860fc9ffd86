// Text measured and cut in UTF-8 bytes, as brokers count it.

const encoder = new TextEncoder();

export function utf8Length(text: string): number {
  return encoder.encode(text).length;
}

/** `text`, or as much of it as fits into `maxBytes` with a mark of the cut; never half a character. */
export function cutToBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || utf8Length(text) <= maxBytes) return text;
  const mark = ' [cut]';
  const target = new Uint8Array(Math.max(0, maxBytes - mark.length));
  const { read } = encoder.encodeInto(text, target);
  return text.slice(0, read) + mark;
}
