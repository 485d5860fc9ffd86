// The workflows of a run: those of the examples, whose days are parts of a second here, and one whose steps a handler does. What they
// do outside is a line in a ledger.
import 'reflect-metadata';
import { expenseApproval } from '../../../examples/13-approval-with-timeout/approval.js';
import { FulfilOrder } from '../../../examples/12-order-workflow/services.js';
import { monthClosing } from '../../../examples/14-fan-out/closing.js';
import { defineHandler, exponentialBackoff, fixedBackoff, poison, success, topic } from '../../../src/index.js';
import type { Delivery, Outcome } from '../../../src/index.js';
import type { Flow, WorkflowDefinition } from '../../../src/workflow.js';
import { defineWorkflow, remoteStep, stepFailure, stepResult } from '../../../src/workflow.js';
import { z } from 'zod';
import type { Ledger } from './ledger.js';
import type { Mistake } from './kills-plan.js';
import { isBroken } from './kills-plan.js';

/** Of the order's times: 48 hours are 200 ms, two weeks 1.4 s. */
const FASTER = 864_000;
const REMIND_AFTER_MS = 60;
const AGAIN = { backoff: fixedBackoff(20), maxDeliveries: 20 };

const Item = z.object({ id: z.string() });
const charges = topic('charges', { payload: Item });
const refunds = topic('refunds', { payload: Item });
const shipments = topic('shipments', { payload: z.object({ id: z.string(), isRefused: z.boolean() }) });

export function killsDefinitions(ledger: Ledger, mistake: Mistake | undefined): readonly WorkflowDefinition[] {
  const { closing, statement } = monthClosing(booksOn(ledger));
  return [
    orderOn(ledger, mistake),
    expenseApproval(officeOn(ledger), REMIND_AFTER_MS),
    closing,
    statement,
    remoteOrder(ledger),
  ];
}

function orderOn(ledger: Ledger, mistake: Mistake | undefined): WorkflowDefinition {
  const undo = { refund: 'refund', release: 'release' };
  // The names are told in the order of the steps.
  if (mistake === 'undoes-in-order') Object.assign(undo, { refund: 'release', release: 'refund' });
  const payments = {
    async charge({ id }: { readonly id: string }) {
      await ledger.did(`charge ${id}`);
      if (mistake === 'acts-twice') await ledger.did(`charge ${id}`);
      return { id: mistake === 'answers-wrongly' ? 'ch-0' : `ch-${id}` };
    },
    async refund(chargeId: string) {
      if (mistake !== 'skips-an-undoing') await ledger.did(`${undo.refund} ${chargeId.slice(3)}`);
    },
  };
  const stock = {
    reserve: ({ id }: { readonly id: string }) => ledger.did(`reserve ${id}`),
    release: (id: string) => ledger.did(`${undo.release} ${id}`),
  };
  const order = new FulfilOrder(payments, stock);
  return defineWorkflow({
    name: 'fulfil-order',
    version: 1,
    input: z.object({ id: z.string(), item: z.string(), amount: z.number() }),
    run: (flow, input) => order.run(faster(flow), input),
  });
}

/** The same, whose waits are over sooner. */
function faster(flow: Flow): Flow {
  const sleep = (name: string, ms: number): Promise<void> => flow.sleep(name, ms / FASTER);
  const signal = (name: string, options: { readonly timeoutMs: number }): Promise<unknown> =>
    flow.signal(name, { ...options, timeoutMs: options.timeoutMs / FASTER });
  const own: Readonly<Record<PropertyKey, unknown>> = { sleep, signal };
  return new Proxy(flow, { get: (target, name) => own[name] ?? (Reflect.get(target, name) as unknown) });
}

function officeOn(ledger: Ledger): Parameters<typeof expenseApproval>[0] {
  return {
    hold: ({ id }) => ledger.did(`hold ${id}`),
    giveBack: ({ id }) => ledger.did(`give-back ${id}`),
    ask: (who, { id }) => ledger.did(`ask-${who} ${id}`),
    remind: (who, { id }) => ledger.did(`remind-${who} ${id}`),
    payOut: ({ id }) => ledger.did(`pay-out ${id}`),
  };
}

function booksOn(ledger: Ledger): Parameters<typeof monthClosing>[0] {
  return {
    lock: (month) => ledger.did(`lock ${month}`),
    unlock: (month) => ledger.did(`unlock ${month}`),
    async add(month, account) {
      if (isBroken(month, account)) return poison('it does not add up');
      await ledger.did(`add ${month}/${account}`);
      return 10;
    },
    write: (month, account) => ledger.did(`write ${month}/${account}`),
    discard: (month, account) => ledger.did(`discard ${month}/${account}`),
  };
}

function remoteOrder(ledger: Ledger): WorkflowDefinition {
  return defineWorkflow({
    name: 'remote-order',
    version: 1,
    input: z.object({ id: z.string(), waits: z.boolean(), isRefused: z.boolean() }),
    async run(flow, { id, waits, isRefused }) {
      const compensate = { topic: refunds, input: (done: z.infer<typeof Item>) => done, redelivery: AGAIN };
      await flow.step(
        'charge there',
        { topic: charges, input: { id }, result: Item },
        { compensate, redelivery: AGAIN },
      );
      await flow.step('pack', () => ledger.did(`pack ${id}`), {
        compensate: { run: () => ledger.did(`unpack ${id}`), redelivery: AGAIN },
        redelivery: AGAIN,
      });
      if (waits) await flow.signal('go');
      const ship = { topic: shipments, input: { id, isRefused }, result: z.string() };
      return flow.step('ship there', ship, { redelivery: AGAIN });
    },
  });
}

/** What does the work of steps, and takes the receipts. */
export function killsHandlers(ledger: Ledger, isMoody: (key: string, attempt: number) => boolean) {
  const common = {
    subscription: 'there',
    redelivery: { backoff: exponentialBackoff({ minMs: 10, maxMs: 200 }) },
  } as const;
  const done = async (delivery: Delivery, what: string, value?: unknown): Promise<Outcome> => {
    const { idempotencyKey = '', attempt = 0 } = remoteStep(delivery) ?? {};
    if (isMoody(idempotencyKey, attempt)) return stepFailure(delivery, 'not now');
    await ledger.write({ key: idempotencyKey, attempt, what, remote: true });
    // As a handler that dies behind its work: the same comes again.
    if (delivery.attempt === 1 && isMoody(`${idempotencyKey}!`, attempt)) throw new Error('the answer is lost');
    return stepResult(delivery, value);
  };
  return [
    defineHandler({
      name: 'There.charge',
      source: charges,
      ...common,
      handle: (delivery) => done(delivery, `charge-there ${delivery.payload.id}`, delivery.payload),
    }),
    defineHandler({
      name: 'There.refund',
      source: refunds,
      ...common,
      handle: (delivery) => done(delivery, `refund-there ${delivery.payload.id}`),
    }),
    defineHandler({
      name: 'There.ship',
      source: shipments,
      ...common,
      handle: (delivery) => {
        const { id, isRefused } = delivery.payload;
        if (isRefused) return stepFailure(delivery, 'no such address', { retry: false });
        return done(delivery, `ship-there ${id}`, `shipped ${id}`);
      },
    }),
    defineHandler({
      name: 'Receipts.keep',
      source: topic('receipts'),
      ...common,
      handle: async ({ properties }) => {
        await ledger.receipt(properties['pulsework-message-id'] ?? '');
        return success();
      },
    }),
  ];
}
