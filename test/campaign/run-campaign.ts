// Runs a campaign seed by seed and tells of each violation at once, with the command that replays it. A run that throws,
// hangs, or leaves an error that nobody handles has violated something as well.
import { replayCommand } from './campaign.js';
import type { Campaign, Choices, ViolatedRun } from './campaign.js';
import { Progress } from './progress.js';
import type { ProgressOutput } from './progress.js';

const DEFAULT_RUN_LIMIT_MS = 60_000;
/** After so many the campaign ends: what is broken is known, and hanging runs would take hours. */
const MAX_VIOLATED_RUNS = 10;

export interface CampaignRequest {
  readonly runs: number;
  readonly seed: number;
  /** @default the campaign's own */
  readonly minutes?: number | undefined;
  /** @default none */
  readonly choices?: Choices | undefined;
  readonly progress: ProgressOutput;
  /** Takes the lines of the report. */
  readonly report: (line: string) => void;
}

/** The exit code: 0 when all held, 1 when something did not, 2 when the campaign could not run. */
export type ExitCode = 0 | 1 | 2;

export async function runCampaign(campaign: Campaign, request: CampaignRequest): Promise<ExitCode> {
  try {
    const missing = await campaign.setUp?.(request.choices ?? {});
    if (missing === undefined) return await runAll(campaign, request);
    request.report(`${campaign.name} cannot run: ${missing}`);
    return 2;
  } finally {
    await campaign.tearDown?.();
  }
}

async function runAll(
  campaign: Campaign,
  { runs, seed: firstSeed, minutes = campaign.defaultMinutes, choices = {}, progress, report }: CampaignRequest,
): Promise<ExitCode> {
  const shown = new Progress(progress, campaign.name, runs);
  const violated: ViolatedRun[] = [];
  let begun = 0;
  let done = 0;
  const runInTurn = async (): Promise<void> => {
    while (begun < runs && violated.length < MAX_VIOLATED_RUNS) {
      const seed = firstSeed + begun;
      begun += 1;
      const violations = await runOnce(campaign, { seed, minutes, choices });
      done += 1;
      if (violations.length > 0) {
        violated.push({ seed, violations });
        shown.clear();
        for (const line of linesOf(campaign, { seed, violations }, { minutes, choices })) report(line);
      }
      shown.update(done, violated.length);
    }
  };
  await Promise.all(Array.from({ length: campaign.atOnce ?? 1 }, runInTurn));
  shown.clear();
  const seeds = done === 1 ? `seed ${firstSeed}` : `seeds ${firstSeed} to ${firstSeed + done - 1}`;
  const seconds = (shown.elapsedMs / 1_000).toFixed(1);
  const summary = campaign.summary === undefined ? '' : `, ${campaign.summary()}`;
  report(`${campaign.name}: ${done} runs, ${seeds}, ${violated.length} violated, ${seconds} s${summary}`);
  return violated.length === 0 ? 0 : 1;
}

interface Run {
  readonly seed: number;
  readonly minutes: number | undefined;
  readonly choices: Choices;
}

async function runOnce(campaign: Campaign, run: Run): Promise<readonly string[]> {
  const unhandled: string[] = [];
  const collect = (error: unknown): void => void unhandled.push(`an error that nobody handled: ${stackOf(error)}`);
  process.on('uncaughtException', collect);
  process.on('unhandledRejection', collect);
  try {
    const violations = await withinLimit(campaign, run).catch((error: unknown) => [`it threw ${stackOf(error)}`]);
    return [...violations, ...unhandled];
  } finally {
    process.off('uncaughtException', collect);
    process.off('unhandledRejection', collect);
  }
}

async function withinLimit(campaign: Campaign, { seed, minutes = 0, choices }: Run): Promise<readonly string[]> {
  const runLimitMs = (campaign.runLimitMs ?? DEFAULT_RUN_LIMIT_MS) + minutes * 60_000;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<readonly string[]>((resolve) => {
    timer = setTimeout(() => resolve([`it did not end within ${runLimitMs} ms`]), runLimitMs);
  });
  try {
    return await Promise.race([campaign.run(seed, minutes, choices), late]);
  } finally {
    clearTimeout(timer);
  }
}

function linesOf(
  campaign: Campaign,
  { seed, violations }: ViolatedRun,
  { minutes, choices }: Omit<Run, 'seed'>,
): readonly string[] {
  const heading = `${campaign.name}, seed ${seed}: ${violations.length} violated`;
  return [
    heading,
    ...violations.map((each) => `  - ${each}`),
    `  replay: ${replayCommand(campaign, seed, minutes, choices)}`,
  ];
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
