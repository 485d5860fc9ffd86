// Durations as people read them: exact, in the largest units that fit.

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
] as const;

/** `100 ms`, `1.5 s`, `17 min 4 s`, `2 d 1 h`. Nothing is rounded away. @param durationMs milliseconds, 0 or more, finite. */
export function durationText(durationMs: number): string {
  if (durationMs < 1_000) return `${durationMs} ms`;
  const parts: string[] = [];
  let restMs = durationMs;
  for (const [unit, sizeMs] of UNITS) {
    const count = Math.floor(restMs / sizeMs);
    if (count > 0) parts.push(`${count} ${unit}`);
    restMs -= count * sizeMs;
  }
  if (restMs > 0) parts.push(`${restMs / 1_000} s`);
  return parts.join(' ');
}
