// Which of the positions that something is kept for lie in a range that was passed at once, by whichever way is shorter:
// through the range or through what is kept. So a cumulative acknowledgement costs no more than the entries it passes.

/** @param from, to both included. */
export function passedPositions(kept: ReadonlyMap<number, unknown>, from: number, to: number): number[] {
  if (kept.size < to - from) return [...kept.keys()].filter((position) => position >= from && position <= to);
  const positions: number[] = [];
  for (let position = from; position <= to; position++) if (kept.has(position)) positions.push(position);
  return positions;
}
