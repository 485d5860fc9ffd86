// The order of example 12: charged, reserved, packed in time or not, and two weeks later its receipt.
import 'reflect-metadata';
import { FulfilOrder } from '../../../examples/12-order-workflow/services.js';
import type { Payments, Stock } from '../../../examples/12-order-workflow/services.js';
import { days, hours, minutes, seconds } from '../../../src/index.js';
import type { Ledger } from './ledger.js';
import type { Mistake } from './program.js';
import type { Story } from './story.js';
import { LAG_MS, happenedTo, isRefused } from './story.js';

export const orderStory: Story = {
  workflow: 'fulfil-order',
  names: ['fulfil-order'],
  family: (id) => [{ name: 'fulfil-order', id }],
  input: (id) => ({ id, item: 'lamp', amount: 5 }),
  signal: 'packed',
  payload: (value) => ({ by: `dock-${value}` }),
  definitions: (ledger, mistake) => ({
    definitions: [FulfilOrder],
    resolve: () => new FulfilOrder(paymentsOn(ledger, mistake), stockOn(ledger, mistake)),
  }),
  undoing: { charge: 'refund', reserve: 'release' },
  topic: 'receipts',
  ends(program, _workflow, id) {
    const { signals, cancelsAfterMs } = happenedTo(program, id);
    const cancelled = cancelsAfterMs.length > 0 ? ['cancelled'] : [];
    if (['charge', 'reserve'].some((step) => isRefused(program, step, id)))
      return { statuses: ['failed', ...cancelled] };
    const isSurelyPacked = signals.some(({ afterMs }) => afterMs < hours(48) - LAG_MS);
    const mayBePacked = signals.some(({ afterMs }) => afterMs < hours(48) + LAG_MS);
    const isSurelyCancelled = cancelsAfterMs.some((afterMs) => afterMs > LAG_MS && afterMs < days(13));
    const completed = mayBePacked && !isSurelyCancelled ? ['completed'] : [];
    const failed = isSurelyPacked ? [] : ['failed'];
    return { statuses: [...completed, ...failed, ...cancelled], result: { orderId: id, chargeId: `ch-${id}` } };
  },
  refusable: () => ['charge', 'reserve'],
  timesMs: [-seconds(1), seconds(1), seconds(15), minutes(1), hours(1), hours(30), hours(48), hours(48) + 1, days(5)],
};

function paymentsOn(ledger: Ledger, mistake: Mistake | undefined): Payments {
  return {
    async charge({ id }) {
      ledger.did(`charge ${id}`);
      if (mistake === 'acts-outside-steps') await Promise.resolve().then(() => ledger.did(`charge ${id}`));
      return { id: mistake === 'answers-wrongly' ? 'ch-0' : `ch-${id}` };
    },
    async refund(chargeId) {
      const id = chargeId.slice('ch-'.length);
      if (mistake !== 'skips-a-compensation')
        ledger.did(`${mistake === 'swaps-compensations' ? 'release' : 'refund'} ${id}`);
    },
  };
}

function stockOn(ledger: Ledger, mistake: Mistake | undefined): Stock {
  return {
    reserve: async ({ id }) => ledger.did(`reserve ${id}`),
    release: async (id) => ledger.did(`${mistake === 'swaps-compensations' ? 'refund' : 'release'} ${id}`),
  };
}
