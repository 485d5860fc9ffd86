// The closing of a month of example 14, with two accounts: the parent goes on without an account that fails.
import { monthClosing } from '../../../examples/14-fan-out/closing.js';
import { hours, minutes, seconds } from '../../../src/index.js';
import type { CrashProgram } from './program.js';
import type { RightEnds, Story } from './story.js';
import { happenedTo, isRefused } from './story.js';

const ACCOUNTS = ['acc-1', 'acc-2'];

export const fanOutStory: Story = {
  workflow: 'month-closing',
  names: ['month-closing', 'statement'],
  family: (id) => [
    { name: 'month-closing', id },
    ...ACCOUNTS.map((account) => ({ name: 'statement', id: `${id}/${account}` })),
  ],
  input: (month) => ({ month, accounts: ACCOUNTS }),
  // It waits for none: one that comes changes nothing.
  signal: 'hurry',
  payload: (value) => value,
  definitions: (ledger) => {
    const { closing, statement } = monthClosing({
      lock: async (month) => ledger.did(`lock ${month}`),
      unlock: async (month) => ledger.did(`unlock ${month}`),
      async add(month, account) {
        ledger.did(`add ${month}/${account}`);
        return balanceOf(account);
      },
      write: async (month, account) => ledger.did(`write ${month}/${account}`),
      discard: async (month, account) => ledger.did(`discard ${month}/${account}`),
    });
    return { definitions: [closing, statement] };
  },
  undoing: { lock: 'unlock', write: 'discard' },
  topic: 'closings',
  ends: (program, workflow, id) => (workflow === 'statement' ? endsOfChild(program, id) : endsOfParent(program, id)),
  refusable: (ids) => ['lock', ...ids.flatMap((id) => ACCOUNTS.flatMap((account) => refusalsOf(`${id}/${account}`)))],
  timesMs: [-seconds(1), 0, 1, seconds(1), seconds(2), seconds(15), minutes(1), hours(1)],
};

function balanceOf(account: string): number {
  return Number(account.slice('acc-'.length)) * 10;
}

function refusalsOf(child: string): readonly string[] {
  return [`add of ${child}`, `write of ${child}`];
}

function isFailing(program: CrashProgram, child: string): boolean {
  return ['add', 'write'].some((step) => isRefused(program, step, child));
}

function endsOfParent(program: CrashProgram, id: string): RightEnds {
  const cancelled = happenedTo(program, id).cancelsAfterMs.length > 0 ? ['cancelled'] : [];
  const failed = ACCOUNTS.filter((account) => isFailing(program, `${id}/${account}`));
  if (isRefused(program, 'lock', id) || failed.length * 2 > ACCOUNTS.length)
    return { statuses: ['failed', ...cancelled] };
  const total = ACCOUNTS.filter((account) => !failed.includes(account)).reduce((sum, each) => sum + balanceOf(each), 0);
  return { statuses: ['completed', ...cancelled], result: { month: id, total, failed } };
}

function endsOfChild(program: CrashProgram, child: string): RightEnds {
  const [parent = '', account = ''] = child.split('/');
  const cancelled = happenedTo(program, parent).cancelsAfterMs.length > 0 ? ['cancelled'] : [];
  const end = isFailing(program, child) ? 'failed' : 'completed';
  return { statuses: [end, ...cancelled], result: balanceOf(account) };
}
