// A ledger: the bookings of one account must be made in order, whatever goes wrong with one of them.
import { poison, retryAfter, success, topic } from 'pulsework';
import type { Delivery, Outcome } from 'pulsework';
import { Handler, Subscribe } from 'pulsework/decorators';
import { z } from 'zod';

export const Booking = z.object({ account: z.string(), number: z.int(), toAccount: z.string() });
export type Booking = z.infer<typeof Booking>;
export const bookings = topic('bookings', { payload: Booking });

/** Soon enough after the row of an account is free again. */
const LOOK_AGAIN_MS = 200;

@Handler({ subscription: 'ledger', redelivery: { maxDeliveries: 1_000 } })
export class Ledger {
  /** Accounts whose row somebody else has locked. */
  readonly locked = new Set(['bob']);
  /** What was booked, in order: `alice 1`. */
  readonly booked: string[] = [];

  /** `ordering: 'key'`: the next booking of an account starts only when the one before is done. Other accounts go on. */
  @Subscribe(bookings, { type: 'key-shared', ordering: 'key', onDeadLetter: 'block-key' })
  book({ payload }: Delivery<Booking>): Outcome {
    const { account, number, toAccount } = payload;
    if (this.locked.has(account)) return retryAfter(LOOK_AGAIN_MS, 'the account is locked');
    if (toAccount === 'nowhere') return poison('there is no account "nowhere"');
    this.booked.push(`${account} ${number}`);
    return success();
  }
}
