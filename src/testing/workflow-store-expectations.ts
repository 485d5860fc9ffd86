// How cases of workflow stores say what they expected: without a test framework, so that any can run them.

export function expectThat(holds: boolean, what: string): void {
  if (!holds) throw new Error(`it must hold that ${what}`);
}

/** Fields that are undefined count as absent. */
export function equal(got: unknown, expected: unknown): void {
  if (canonical(got) === canonical(expected)) return;
  throw new Error(`expected ${JSON.stringify(expected)}, got ${JSON.stringify(got)}`);
}

export async function rejectsWith(code: string, call: Promise<unknown>): Promise<void> {
  const error: unknown = await call.then(
    (value) => ({ code: `an answer, ${JSON.stringify(value)}` }),
    (thrown: unknown) => thrown,
  );
  const got = (error as { readonly code?: unknown } | null)?.code;
  if (got !== code) throw new Error(`expected a rejection with ${code}, got ${String(got)}`);
}

/** JSON with the fields of each object in the order of their names. */
function canonical(value: unknown): string | undefined {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
