// Makes a random program that violates a rule as small as it still violates it. What is left shows what is wrong.

interface Steps<Setting, Step> {
  readonly setting: Setting;
  readonly steps: readonly Step[];
}

/**
 * @param smallerThan those that leave out most come first.
 * @param limit how many smaller ones are tried at most.
 */
export async function smallest<Program>(
  program: Program,
  smallerThan: (program: Program) => Iterable<Program>,
  violates: (smaller: Program) => Promise<boolean>,
  limit: number,
): Promise<Program> {
  let found = program;
  let left = limit;
  for (let goesOn = true; goesOn;) {
    goesOn = false;
    for (const smaller of smallerThan(found)) {
      if (left-- <= 0) return found;
      if (!(await violates(smaller))) continue;
      found = smaller;
      goesOn = true;
      break;
    }
  }
  return found;
}

/** Half of the steps left out, then a quarter, then one by one. */
export function* fewerSteps<Setting, Step>({ setting, steps }: Steps<Setting, Step>): Generator<Steps<Setting, Step>> {
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let from = steps.length - size; from > -size; from -= size)
      yield { setting, steps: [...steps.slice(0, Math.max(0, from)), ...steps.slice(from + size)] };
}

/** @param usual what a setting is when it has nothing to do with a violation. */
export function* usualSettings<Setting extends object, Step>(
  { setting, steps }: Steps<Setting, Step>,
  usual: Partial<Setting>,
): Generator<Steps<Setting, Step>> {
  for (const [name, value] of Object.entries(usual))
    if (setting[name as keyof Setting] !== value) yield { setting: { ...setting, [name]: value }, steps };
}
