// What a story is: one of the examples over services that write into a ledger, and the ways in which it may end.
import type { GivenDefinition } from '../../../src/workflow/workflow-plans.js';
import { hours } from '../../../src/index.js';
import type { Ledger } from './ledger.js';
import type { CrashProgram, Mistake } from './program.js';
import { happeningsOf } from './program.js';

export const STORY_NAMES = ['order', 'approval', 'fan-out'] as const;
export type StoryName = (typeof STORY_NAMES)[number];

/** What a workflow may have come to, by what was done to it. */
export interface RightEnds {
  readonly statuses: readonly string[];
  /** Of a completed one. */
  readonly result?: unknown;
}

export interface Story {
  /** Of the workflows that are started from outside. */
  readonly workflow: string;
  /** All of them. */
  readonly names: readonly string[];
  /** The workflow of that id, and its children. */
  readonly family: (id: string) => readonly { readonly name: string; readonly id: string }[];
  readonly input: (id: string) => unknown;
  readonly signal: string;
  readonly payload: (value: number) => unknown;
  /** @param mistake what is done wrong on purpose */
  definitions(
    ledger: Ledger,
    mistake: Mistake | undefined,
  ): { readonly definitions: readonly GivenDefinition[]; readonly resolve?: () => object };
  /** By the name of a step that can be undone: the first word of what that does. */
  readonly undoing: Readonly<Record<string, string>>;
  /** Where a completed one sends one message. */
  readonly topic: string | undefined;
  /** Of any of its workflows, children too. */
  readonly ends: (program: CrashProgram, workflow: string, id: string) => RightEnds;
  /** For `Setting.refused`. */
  readonly refusable: (ids: readonly string[]) => readonly string[];
  /** When signals and cancellations are worth trying, from the start of the workflow. */
  readonly timesMs: readonly number[];
}

/** By so much the end of a wait may be late, and events too: processes that are gone, calls that hang, stores out of reach. */
export const LAG_MS = hours(6);

export interface HappenedTo {
  /** Milliseconds after its start, in order. */
  readonly signals: readonly { readonly afterMs: number; readonly value: number }[];
  readonly cancelsAfterMs: readonly number[];
}

export function happenedTo(program: CrashProgram, id: string): HappenedTo {
  const own = happeningsOf(program, id).toSorted((a, b) => a.atMs - b.atMs);
  const startMs = own.find((step) => step.do === 'start')?.atMs ?? Infinity;
  return {
    signals: own.flatMap((step) => (step.do === 'signal' ? { afterMs: step.atMs - startMs, value: step.value } : [])),
    cancelsAfterMs: own.flatMap((step) => (step.do === 'cancel' ? step.atMs - startMs : [])),
  };
}

export function isRefused({ setting }: CrashProgram, step: string, id: string): boolean {
  return setting.refused.includes(step) || setting.refused.includes(`${step} of ${id}`);
}
