// The command line of the campaigns: the name of one, and how often and from which seed on it runs.

export type CampaignArguments =
  | { readonly kind: 'help' }
  | {
      readonly kind: 'run';
      readonly name: string;
      /** Undefined for the campaign's own number. */
      readonly runs: number | undefined;
      /** Of the first run; each further one has the next. */
      readonly seed: number;
    };

const DEFAULT_SEED = 1;
const USAGE = 'npm run campaign -- NAME [--runs N] [--seed S]';

/** @throws RangeError with all that is wrong, and what there is. */
export function parseArguments(args: readonly string[], known: readonly string[]): CampaignArguments {
  if (args.includes('--help')) return { kind: 'help' };
  const problems: string[] = [];
  const names: string[] = [];
  const numbers = new Map<string, number>();
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? '';
    if (arg === '--runs' || arg === '--seed') numbers.set(arg, wholeNumber(arg, args[++at], problems));
    else if (arg.startsWith('-')) problems.push(`unknown option ${JSON.stringify(arg)}`);
    else names.push(arg);
  }
  const [name = ''] = names;
  if (names.length !== 1) problems.push(`one campaign must be named, got ${names.length}`);
  for (const unknown of names.filter((each) => !known.includes(each)))
    problems.push(`unknown campaign ${JSON.stringify(unknown)}`);
  if (problems.length > 0) {
    throw new RangeError(`${problems.join('; ')}; campaigns are ${known.join(', ')}; usage: ${USAGE}`);
  }
  return { kind: 'run', name, runs: numbers.get('--runs'), seed: numbers.get('--seed') ?? DEFAULT_SEED };
}

function wholeNumber(option: string, text: string | undefined, problems: string[]): number {
  const least = option === '--runs' ? 1 : 0;
  const number = text !== undefined && /^\d+$/.test(text) ? Number(text) : NaN;
  if (Number.isSafeInteger(number) && number >= least) return number;
  problems.push(`${option} needs a whole number of ${least} or more, got ${JSON.stringify(text ?? null)}`);
  return NaN;
}

export function helpText(
  campaigns: readonly { readonly name: string; readonly says: string; readonly defaultRuns: number }[],
): string {
  const width = Math.max(...campaigns.map(({ name }) => name.length));
  return [
    `usage: ${USAGE}`,
    '',
    ...campaigns.map(({ name, says, defaultRuns }) => `  ${name.padEnd(width)}  ${says} (${defaultRuns} runs)`),
    '',
    `Runs have the seeds S, S + 1 and so on; S is ${DEFAULT_SEED} unless given. Each violation is shown with the command that does`,
    'its run again, and the exit code is 1 then, 2 where the campaign could not run.',
  ].join('\n');
}
