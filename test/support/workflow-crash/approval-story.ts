// The expense of example 13: two people, each with a reminder, four days in all.
import { expenseApproval } from '../../../examples/13-approval-with-timeout/approval.js';
import { days, hours, minutes, seconds } from '../../../src/index.js';
import type { Story } from './story.js';
import { LAG_MS, happenedTo, isRefused } from './story.js';

const WAIT_MS = days(1);
const ALL_WAITS_MS = 4 * WAIT_MS;

export const approvalStory: Story = {
  workflow: 'expense-approval',
  names: ['expense-approval'],
  family: (id) => [{ name: 'expense-approval', id }],
  input: (id) => ({ id, amount: 5 }),
  signal: 'decision',
  payload: (value) => ({ by: `person-${value}`, approved: isApproval(value) }),
  definitions: (ledger) => {
    const office = {
      hold: async ({ id }: { readonly id: string }) => ledger.did(`hold ${id}`),
      giveBack: async ({ id }: { readonly id: string }) => ledger.did(`give-back ${id}`),
      ask: async (who: string, { id }: { readonly id: string }) => ledger.did(`ask-${who} ${id}`),
      remind: async (who: string, { id }: { readonly id: string }) => ledger.did(`remind-${who} ${id}`),
      payOut: async ({ id }: { readonly id: string }) => ledger.did(`pay-out ${id}`),
    };
    return { definitions: [expenseApproval(office, WAIT_MS)] };
  },
  undoing: { hold: 'give-back' },
  topic: undefined,
  ends(program, _workflow, id) {
    const { signals, cancelsAfterMs } = happenedTo(program, id);
    const cancelled = cancelsAfterMs.length > 0 ? ['cancelled'] : [];
    if (['hold', 'pay out'].some((step) => isRefused(program, step, id))) return { statuses: ['failed', ...cancelled] };
    const [first] = signals;
    const firstMs = first?.afterMs ?? Infinity;
    const isSurelyCancelled = cancelsAfterMs.some(
      (ms) => ms > LAG_MS && ms < ALL_WAITS_MS - LAG_MS && firstMs > ms + LAG_MS,
    );
    if (isSurelyCancelled) return { statuses: cancelled };
    const mayBeApproved = first !== undefined && isApproval(first.value) && firstMs < ALL_WAITS_MS + LAG_MS;
    const isSurelyApproved = mayBeApproved && firstMs < ALL_WAITS_MS - LAG_MS;
    const statuses = [...(mayBeApproved ? ['completed'] : []), ...(isSurelyApproved ? [] : ['failed']), ...cancelled];
    return { statuses, result: approvalStory.payload(first?.value ?? 0) };
  },
  refusable: () => ['hold', 'pay out'],
  timesMs: [
    -seconds(1),
    seconds(1),
    seconds(15),
    minutes(10),
    WAIT_MS - 1,
    WAIT_MS,
    WAIT_MS + seconds(2),
    hours(60),
    ALL_WAITS_MS,
    days(6),
  ],
};

function isApproval(value: number): boolean {
  return value % 2 === 1;
}
