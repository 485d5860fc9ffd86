// `npm run campaign -- NAME [--runs N] [--seed S] [--minutes M]`: what takes too many runs, or too long, for a test. Standard output
// holds the report and nothing else; progress goes to standard error.
import { helpText, parseArguments } from './arguments.js';
import type { CampaignArguments } from './arguments.js';
import { CAMPAIGNS } from './catalog.js';
import { runCampaign } from './run-campaign.js';

function argumentsOrExit(): CampaignArguments {
  try {
    return parseArguments(
      process.argv.slice(2),
      CAMPAIGNS.map(({ name }) => name),
      CAMPAIGNS.filter(({ defaultMinutes }) => defaultMinutes !== undefined).map(({ name }) => name),
      Object.fromEntries(CAMPAIGNS.map(({ name, choices = {} }) => [name, choices])),
    );
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(2);
  }
}

const asked = argumentsOrExit();
if (asked.kind === 'help') {
  console.log(helpText(CAMPAIGNS));
} else {
  const campaign = CAMPAIGNS.find(({ name }) => name === asked.name)!;
  const exitCode = await runCampaign(campaign, {
    runs: asked.runs ?? campaign.defaultRuns,
    seed: asked.seed,
    minutes: asked.minutes,
    choices: asked.choices,
    progress: process.stderr,
    report: (line) => console.log(line),
  });
  // Runs that hang would keep the process.
  process.exit(exitCode);
}
