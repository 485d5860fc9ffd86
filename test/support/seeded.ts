// Random numbers in [0, 1) that are the same every time: a linear congruence, good enough to mix up the steps of a program.

/** @param state where the sequence begins: near ones begin with near numbers */
export function seeded(state: number): () => number {
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The same for seeds that follow each other, whose sequences are to have nothing in common. */
export function scattered(seed: number): () => number {
  const next = seeded((seed * 2654435761) >>> 0);
  for (let i = 0; i < 5; i++) next();
  return next;
}
