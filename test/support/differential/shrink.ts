// Makes a program that differs as short as it still differs: what is left shows what is wrong.
import type { Program, Step } from './program.js';

/**
 * Leaves out steps, larger pieces first, as long as `differs` says that what is left differs too.
 * @param limit how many shorter programs are tried at most.
 */
export async function shrunk(
  program: Program,
  differs: (shorter: Program) => Promise<boolean>,
  limit: number,
): Promise<Program> {
  let { steps } = program;
  let tried = 0;
  for (let size = Math.floor(steps.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let from = steps.length - size; from >= 0 && tried < limit; from -= size) {
      const shorter: readonly Step[] = [...steps.slice(0, from), ...steps.slice(from + size)];
      tried += 1;
      if (await differs({ ...program, steps: shorter })) steps = shorter;
    }
  }
  return { ...program, steps };
}
