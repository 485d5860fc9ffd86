// What a run of `workflow-kills` is about: which workflows there are, what is done to each, and how each may end. Pure.

export type StoreKind = 'sqlite' | 'postgres';
export type BrokerKind = 'embedded' | 'pulsar';

/** What goes wrong on purpose, to see that the checks find it. */
export const MISTAKES = [
  'writes-late',
  'skips-an-undoing',
  'undoes-in-order',
  'acts-twice',
  'answers-wrongly',
] as const;
export type Mistake = (typeof MISTAKES)[number];

/** Of one process; it gets them as JSON. */
export interface KillsSettings {
  /** Where the ledger is, and what of store and broker is in files. */
  readonly folder: string;
  readonly store:
    | { readonly kind: 'sqlite' }
    | { readonly kind: 'postgres'; readonly url: string; readonly schema: string };
  /** `prefix`: of all topics of this run. */
  readonly broker:
    | { readonly kind: 'embedded' }
    | { readonly kind: 'pulsar'; readonly url: string; readonly prefix: string };
  readonly seed: number;
  /** How many workflows are started; those of earlier lives once more. */
  readonly count: number;
  /** It waits for all ends, and tells of them. */
  readonly isLast: boolean;
  readonly mistake?: Mistake | undefined;
}

/** A line of the ledger: something that was done outside. */
export interface Effect {
  /** Idempotency key of the step. */
  readonly key: string;
  readonly attempt: number;
  readonly what: string;
  /** By a handler. */
  readonly remote?: true;
}

export interface PlannedWorkflow {
  readonly name: 'fulfil-order' | 'expense-approval' | 'month-closing' | 'remote-order';
  readonly id: string;
  readonly input: unknown;
  /** Before its start or behind it; always the same event. */
  readonly signal?: { readonly name: string; readonly payload: unknown; readonly isEarly: boolean } | undefined;
  readonly isCancelled?: boolean | undefined;
  readonly statuses: readonly string[];
  /** Of a completed one. */
  readonly result?: unknown;
}

const KINDS = [orderOf, approvalOf, closingOf, remoteOf];
const ACCOUNTS = ['acc-1', 'acc-2', 'acc-3'];

export function plannedWorkflows(count: number): readonly PlannedWorkflow[] {
  return Array.from({ length: count }, (_, n) => {
    const mode = Math.floor(n / KINDS.length) % 3;
    return (KINDS[n % KINDS.length] as (id: string, mode: number) => PlannedWorkflow)(`w${n}`, mode);
  });
}

/** By the name of the workflow: the steps that can be undone, and the first word of what undoes each. */
export const UNDOING: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'fulfil-order': { charge: 'refund', reserve: 'release' },
  'expense-approval': { hold: 'give-back' },
  'month-closing': { lock: 'unlock' },
  statement: { write: 'discard' },
  'remote-order': { 'charge there': 'refund-there', pack: 'unpack' },
};

/** Which accounts of a closing cannot be closed. */
export function isBroken(month: string, account: string): boolean {
  const mode = Math.floor(Number(month.slice(1)) / KINDS.length) % 3;
  return mode === 2 ? account !== 'acc-1' : mode === 1 && account === 'acc-2';
}

function orderOf(id: string, mode: number): PlannedWorkflow {
  const base = { name: 'fulfil-order', id, input: { id, item: 'lamp', amount: 40 } } as const;
  const packed = { name: 'packed', payload: { by: 'dock-1' }, isEarly: true };
  if (mode === 0)
    return { ...base, signal: packed, statuses: ['completed'], result: { orderId: id, chargeId: `ch-${id}` } };
  // The cancellation may come after the time limit of what it waits for.
  return mode === 1
    ? { ...base, statuses: ['failed'] }
    : { ...base, isCancelled: true, statuses: ['cancelled', 'failed'] };
}

function approvalOf(id: string, mode: number): PlannedWorkflow {
  const base = { name: 'expense-approval', id, input: { id, amount: 40 } } as const;
  const decision = { by: 'ann', approved: mode === 0 };
  const signal = { name: 'decision', payload: decision, isEarly: true };
  if (mode === 2) return { ...base, statuses: ['failed'] };
  return { ...base, signal, statuses: [mode === 0 ? 'completed' : 'failed'], result: decision };
}

function closingOf(month: string, mode: number): PlannedWorkflow {
  const base = { name: 'month-closing', id: month, input: { month, accounts: ACCOUNTS } } as const;
  const failed = ACCOUNTS.filter((account) => isBroken(month, account));
  const total = ACCOUNTS.filter((account) => !failed.includes(account)).length * 10;
  return { ...base, statuses: [mode === 2 ? 'failed' : 'completed'], result: { month, total, failed } };
}

function remoteOf(id: string, mode: number): PlannedWorkflow {
  const base = { name: 'remote-order', id, input: { id, waits: mode === 2, isRefused: mode === 1 } } as const;
  const ends = ['completed', 'failed', 'cancelled'] as const;
  return { ...base, isCancelled: mode === 2, statuses: [ends[mode] as string], result: `shipped ${id}` };
}

/** Of a closing: as parts of the run they are judged too. */
export function plannedStatements(
  month: string,
): readonly { readonly id: string; readonly statuses: readonly string[] }[] {
  return ACCOUNTS.map((account) => ({
    id: `${month}/${account}`,
    statuses: [isBroken(month, account) ? 'failed' : 'completed'],
  }));
}
