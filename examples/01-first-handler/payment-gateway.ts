// A stand-in for a payment provider. Like the test mode of a real one, it decides by the card's token, so every run of
// the example ends the same.
import { setTimeout as wait } from 'node:timers/promises';
import type { Order } from './orders.js';

/** The bank will never take this card. */
export class CardDeclined extends Error {
  override readonly name = 'CardDeclined';
}

/** The bank gave no answer; it may give one later. */
export class BankUnavailable extends Error {
  override readonly name = 'BankUnavailable';
}

const ROUND_TRIP_MS = 2;

export class PaymentGateway {
  readonly #unanswered = new Map<string, number>();

  /** Asking again for an order that was charged gives the same charge: a repeated delivery charges nobody twice. */
  async charge(
    order: Order,
    amountCents: number,
  ): Promise<{ readonly chargeId: string; readonly amountCents: number }> {
    await wait(ROUND_TRIP_MS);
    if (order.card === 'tok_stolen') {
      throw new CardDeclined(`order ${order.id}: the card of ${order.customer.name} was reported stolen`);
    }
    const unanswered = this.#unanswered.get(order.id) ?? 0;
    if (unanswered < failuresOf(order.card)) {
      this.#unanswered.set(order.id, unanswered + 1);
      throw new BankUnavailable(`order ${order.id}: the bank did not answer`);
    }
    return { chargeId: `charge-${order.id}`, amountCents };
  }
}

/** `tok_bank_busy_2`: no answer twice, then one. `tok_bank_down`: never one. */
function failuresOf(card: string): number {
  if (card === 'tok_bank_down') return Infinity;
  return Number(/^tok_bank_busy_(\d+)$/.exec(card)?.[1] ?? 0);
}
