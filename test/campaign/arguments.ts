// The command line of the campaigns: the name of one, how often, from which seed on, and how long it runs.

export type CampaignArguments =
  | { readonly kind: 'help' }
  | {
      readonly kind: 'run';
      readonly name: string;
      /** Undefined for the campaign's own number. */
      readonly runs: number | undefined;
      /** Of the first run; each further one has the next. */
      readonly seed: number;
      /** Undefined for the campaign's own number. */
      readonly minutes: number | undefined;
      /** Of the campaign's own options, the first of each unless it is given. */
      readonly choices: Readonly<Record<string, string>>;
    };

/** By campaign and option: what it may be. */
export type KnownChoices = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

const DEFAULT_SEED = 1;
const USAGE = 'npm run campaign -- NAME [--runs N] [--seed S] [--minutes M]';
const OPTIONS = ['--runs', '--seed', '--minutes'];

/**
 * @param timed names of the campaigns that take `--minutes`
 * @param choices of the campaigns that have options of their own
 * @throws RangeError with all that is wrong, and what there is.
 */
export function parseArguments(
  args: readonly string[],
  known: readonly string[],
  timed: readonly string[] = [],
  choices: KnownChoices = {},
): CampaignArguments {
  if (args.includes('--help')) return { kind: 'help' };
  const { problems, names, numbers, chosen } = readArguments(args, choices);
  const [name = ''] = names;
  if (names.length !== 1) problems.push(`one campaign must be named, got ${names.length}`);
  for (const unknown of names.filter((each) => !known.includes(each)))
    problems.push(`unknown campaign ${JSON.stringify(unknown)}`);
  const minutes = numbers.get('--minutes');
  if (minutes !== undefined && known.includes(name) && !timed.includes(name))
    problems.push(`${name} takes no --minutes, only ${timed.join(', ')} does`);
  const own = known.includes(name) ? checkedChoices(name, choices[name] ?? {}, chosen, problems) : {};
  if (problems.length > 0) {
    throw new RangeError(`${problems.join('; ')}; campaigns are ${known.join(', ')}; usage: ${USAGE}`);
  }
  const seed = numbers.get('--seed') ?? DEFAULT_SEED;
  return { kind: 'run', name, runs: numbers.get('--runs'), seed, minutes, choices: own };
}

function readArguments(args: readonly string[], choices: KnownChoices) {
  const problems: string[] = [];
  const names: string[] = [];
  const numbers = new Map<string, number>();
  const chosen = new Map<string, string>();
  const ownOptions = new Set(Object.values(choices).flatMap((own) => Object.keys(own).map((option) => `--${option}`)));
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? '';
    if (OPTIONS.includes(arg)) numbers.set(arg, wholeNumber(arg, args[++at], problems));
    else if (ownOptions.has(arg)) chosen.set(arg.slice('--'.length), args[++at] ?? '');
    else if (arg.startsWith('-')) problems.push(`unknown option ${JSON.stringify(arg)}`);
    else names.push(arg);
  }
  return { problems, names, numbers, chosen };
}

function checkedChoices(
  name: string,
  own: Readonly<Record<string, readonly string[]>>,
  chosen: ReadonlyMap<string, string>,
  problems: string[],
): Readonly<Record<string, string>> {
  for (const [option, choice] of chosen) {
    const possible = own[option];
    if (possible === undefined) problems.push(`${name} takes no --${option}`);
    else if (!possible.includes(choice))
      problems.push(`--${option} must be one of ${possible.join(', ')}, got ${JSON.stringify(choice)}`);
  }
  return Object.fromEntries(Object.entries(own).map(([option, [first = '']]) => [option, chosen.get(option) ?? first]));
}

function choiceTexts(choices: Readonly<Record<string, readonly string[]>>): readonly string[] {
  return Object.entries(choices).map(([option, possible]) => `--${option} ${possible.join('|')}`);
}

function wholeNumber(option: string, text: string | undefined, problems: string[]): number {
  const least = option === '--seed' ? 0 : 1;
  const number = text !== undefined && /^\d+$/.test(text) ? Number(text) : NaN;
  if (Number.isSafeInteger(number) && number >= least) return number;
  problems.push(`${option} needs a whole number of ${least} or more, got ${JSON.stringify(text ?? null)}`);
  return NaN;
}

export function helpText(
  campaigns: readonly {
    readonly name: string;
    readonly says: string;
    readonly defaultRuns: number;
    readonly defaultMinutes?: number | undefined;
    readonly choices?: Readonly<Record<string, readonly string[]>> | undefined;
  }[],
): string {
  const width = Math.max(...campaigns.map(({ name }) => name.length));
  const often = (runs: number, minutes?: number): string =>
    minutes === undefined ? `${runs} runs` : `${runs} of ${minutes} minutes, or --minutes M`;
  return [
    `usage: ${USAGE}`,
    '',
    ...campaigns.map(
      ({ name, says, defaultRuns, defaultMinutes, choices = {} }) =>
        `  ${name.padEnd(width)}  ${says} (${[often(defaultRuns, defaultMinutes), ...choiceTexts(choices)].join(', ')})`,
    ),
    '',
    `Runs have the seeds S, S + 1 and so on; S is ${DEFAULT_SEED} unless given. Each violation is shown with the command that does`,
    'its run again, and the exit code is 1 then, 2 where the campaign could not run.',
  ].join('\n');
}
