// Makes an interleaving that violates a rule as small as it still violates it: fewer steps, fewer messages, fewer failures, less
// time, and settings that are the usual ones. What is left shows what is wrong.
import { fewerSteps, smallest, usualSettings } from '../shrink.js';
import type { Job, Program, Setting, Step } from './program.js';

/** What a setting is when it has nothing to do with a violation; the mode stays. */
const USUAL: Omit<Setting, 'mode'> = {
  partitions: 1,
  concurrency: 1,
  prefetch: 5,
  maxDeliveries: 4,
  backoffMs: 0,
  maxProcesses: 1,
  keyBlocks: false,
  maxLaneMessages: 1_000,
  consistentHashing: true,
  lookAhead: 2_000,
  maxRetryingPositions: 50_000,
  latencyMs: 0,
};

/** @param limit how many smaller ones are tried at most. */
export function shrunk(
  program: Program,
  violates: (smaller: Program) => Promise<boolean>,
  limit: number,
): Promise<Program> {
  return smallest(program, smallerThan, violates, limit);
}

/** Those that leave out most come first. */
function* smallerThan(program: Program): Generator<Program> {
  const { setting, steps } = program;
  yield* fewerSteps(program);
  yield* usualSettings(program, USUAL);
  for (const [at, step] of steps.entries())
    for (const smaller of smallerSteps(step)) yield { setting, steps: steps.with(at, smaller) };
}

function* smallerSteps(step: Step): Generator<Step> {
  if (step.do === 'pass') for (const ms of lessThan(step.ms)) yield { ...step, ms };
  if (step.do === 'fault' && step.fault !== 'throws') yield { ...step, fault: 'throws' };
  if (step.do !== 'publish' && step.do !== 'publish-batch') return;
  const { jobs } = step;
  if (jobs.length > 1) for (const at of jobs.keys()) yield { ...step, jobs: jobs.toSpliced(at, 1) };
  for (const [at, job] of jobs.entries())
    for (const smaller of smallerJobs(job)) yield { ...step, jobs: jobs.with(at, smaller) };
}

function* smallerJobs(job: Job): Generator<Job> {
  const { endings } = job;
  for (const at of endings.keys()) yield { ...job, endings: endings.toSpliced(at, 1) };
  for (const [at, ending] of endings.entries()) {
    for (const runMs of lessThan(ending.runMs)) yield { ...job, endings: endings.with(at, { ...ending, runMs }) };
    for (const delayMs of lessThan(ending.delayMs)) yield { ...job, endings: endings.with(at, { ...ending, delayMs }) };
  }
}

/** Round numbers below, the smallest first. */
function lessThan(value: number): readonly number[] {
  return [0, 1, 10, 100, 1_000, 10_000, 60_000].filter((round) => round < value);
}
