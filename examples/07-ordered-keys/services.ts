// A ledger: the bookings of one account must be made in order, whatever goes wrong with one of them.
import { poison, retryAfter, success, topic } from 'pulsework';
import type { Delivery, Outcome } from 'pulsework';
import { Handler, Subscribe } from 'pulsework/decorators';
import { z } from 'zod';

export const Booking = z.object({ account: z.string(), number: z.int(), toAccount: z.string() });
export type Booking = z.infer<typeof Booking>;
export const bookings = topic('bookings', { payload: Booking });

/** How long the row of an account stays locked by somebody else. */
const LOCKED_MS = 400;

@Handler({ subscription: 'ledger' })
export class Ledger {
  /** What was booked, in order: `alice 1`. */
  readonly booked: string[] = [];

  /** `ordering: 'key'`: the next booking of an account starts only when the one before is done. Other accounts go on. */
  @Subscribe(bookings, { type: 'key-shared', ordering: 'key', onDeadLetter: 'block-key' })
  book({ payload, attempt }: Delivery<Booking>): Outcome {
    const { account, number, toAccount } = payload;
    if (account === 'bob' && number === 1 && attempt < 3) return retryAfter(LOCKED_MS, 'the account is locked');
    if (toAccount === 'nowhere') return poison('there is no account "nowhere"');
    this.booked.push(`${account} ${number}`);
    return success();
  }
}
