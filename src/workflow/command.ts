// One thing that the method asked for, and how it stands. The facts of steps come from the journal alone, so that a replay
// knows what the first run knew.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { MessageOptions } from '../core/message.js';
import type { RedeliveryPolicy } from '../core/redelivery-policy.js';
import type { Topic } from '../core/topic.js';
import type { CommandKind, JournalError } from '../core/workflow-journal.js';
import type { Compensation, StepContext } from './flow.js';
import type { RemoteWork } from './remote-steps.js';

export interface PlannedPolicy {
  readonly policy: RedeliveryPolicy;
  readonly timeoutMs: number | undefined;
}

/** `run` is done here, `remote` by a handler: one of them. */
export interface StepWork extends PlannedPolicy {
  readonly run?: ((context: StepContext) => unknown) | undefined;
  readonly remote?: RemoteWork | undefined;
  readonly compensate: PlannedCompensation | undefined;
}

export type PlannedCompensation = PlannedPolicy &
  (Pick<Compensation<never>, 'run'> | { readonly remote: (done: never) => RemoteWork });

export interface ChildWork {
  readonly name: string;
  readonly id: string;
  readonly input: unknown;
  readonly attributes: Readonly<Record<string, string>>;
}

export interface PublishWork {
  readonly topic: Topic<never>;
  readonly payload: unknown;
  readonly options: MessageOptions | undefined;
}

/** What the command is about, by its kind. */
export type CommandWork =
  | { readonly command: 'step' | 'compensate'; readonly step: StepWork }
  | { readonly command: 'sleep'; readonly until: number | Date }
  | {
      readonly command: 'signal';
      readonly schema: StandardSchemaV1 | undefined;
      readonly timeoutMs: number | undefined;
    }
  | { readonly command: 'child'; readonly child: ChildWork }
  | { readonly command: 'publish'; readonly publish: PublishWork }
  | { readonly command: 'patched' };

export class Command {
  readonly at: number;
  readonly name: string;
  readonly work: CommandWork;
  readonly promise: Promise<unknown>;
  /** `withdrawn`: nobody waits for it any more. */
  state: 'open' | 'settled' | 'withdrawn' = 'open';
  /** It has its entry in the journal. */
  recorded = false;
  /** When the method asked for it. */
  askedMs = 0;
  /** When its last attempt began. */
  startedMs: number | undefined;
  /** When a wait is over, also that for an answer. */
  dueMs: number | undefined;
  /** Attempts that began. */
  attempts = 0;
  /** Attempts that failed and count. */
  failures = 0;
  /** Failures in a row that do not count. */
  unspent = 0;
  /** Attempts in a row that left nothing behind, before the one that is in doubt. */
  lost = 0;
  /** An attempt began, and how it ended is not written down. */
  inDoubt = false;
  /** The last attempt was sent to a handler. */
  sent = false;
  /** When it may be tried again. */
  nextMs = -Infinity;
  /** It gave up and waits for a person. */
  stuck = false;
  stuckBy: JournalError | undefined;
  #resolve!: (value: unknown) => void;
  #reject!: (error: Error) => void;

  constructor(at: number, name: string, work: CommandWork) {
    this.at = at;
    this.name = name;
    this.work = work;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // Nobody need wait for it: its failure is in the journal.
    this.promise.catch(() => undefined);
  }

  get kind(): CommandKind {
    return this.work.command;
  }

  /** Undefined for what is no step. */
  get step(): StepWork | undefined {
    return this.work.command === 'step' || this.work.command === 'compensate' ? this.work.step : undefined;
  }

  /** Of a value that comes from outside. */
  get resultSchema(): StandardSchemaV1 | undefined {
    return this.work.command === 'signal' ? this.work.schema : this.step?.remote?.result;
  }

  /** A handler has its work, or will have: there is nothing to do but wait for the answer, until `dueMs`. */
  get isSent(): boolean {
    return this.inDoubt && this.sent && this.step?.remote !== undefined;
  }

  /** A wait that can be given up without a trace. */
  get isWait(): boolean {
    return this.kind === 'sleep' || this.kind === 'signal';
  }

  resolve(value: unknown): void {
    this.state = 'settled';
    this.#resolve(value);
  }

  reject(error: Error): void {
    this.state = 'settled';
    this.#reject(error);
  }
}

const WORDS: Readonly<Partial<Record<CommandKind, string>>> = {
  compensate: 'compensation of',
  patched: 'patch',
  publish: 'publish to',
};

/** `step "charge"`, for people. */
export function commandText({ kind, name }: { readonly kind: CommandKind; readonly name: string }): string {
  return `${WORDS[kind] ?? kind} ${JSON.stringify(name)}`;
}
