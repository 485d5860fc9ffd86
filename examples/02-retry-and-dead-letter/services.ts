// Two handlers that fail: one whose errors mean different things, and one that never succeeds.
import { exponentialBackoff, on, poison, retryAfter, success, topic } from 'pulsework';
import type { Delivery, Outcome } from 'pulsework';
import { Handler, Subscribe } from 'pulsework/decorators';
import { z } from 'zod';

const Payment = z.object({ card: z.string(), amountCents: z.int() });
const Mail = z.object({ to: z.email(), subject: z.string() });

export const payments = topic('payments', { payload: Payment });
export const mails = topic('mails', { payload: Mail });

class CardDeclined extends Error {
  override readonly name = 'CardDeclined';
}

class GatewayBusy extends Error {
  override readonly name = 'GatewayBusy';
  constructor(readonly retryAfterMs: number) {
    super(`the gateway is busy for ${retryAfterMs} ms`);
  }
}

class MailServerDown extends Error {
  override readonly name = 'MailServerDown';
}

@Handler({ subscription: 'billing' })
export class Billing {
  /** Errors become outcomes by the first rule that matches; without one an error is `retry`. */
  @Subscribe(payments, {
    onError: [on(CardDeclined, poison), on(GatewayBusy, (error) => retryAfter(error.retryAfterMs, error))],
    // Sixteen digits are a card number: they must not be readable on a dead letter.
    redact: [/\b\d{16}\b/],
  })
  charge({ payload, attempt }: Delivery<z.infer<typeof Payment>>): Outcome {
    if (payload.card === '4000000000000002') throw new CardDeclined(`card ${payload.card} was declined`);
    if (payload.amountCents > 100_000 && attempt === 1) throw new GatewayBusy(150);
    return success();
  }
}

@Handler({ subscription: 'mailing' })
export class Mailing {
  /** 100 ms, 200 ms, 400 ms and no longer than that; the fifth delivery is the last. */
  @Subscribe(mails, { redelivery: { maxDeliveries: 5, backoff: exponentialBackoff({ minMs: 100, maxMs: 400 }) } })
  send({ payload }: Delivery<z.infer<typeof Mail>>): Outcome {
    const refused = new Error('connect ECONNREFUSED 127.0.0.1:25');
    throw new MailServerDown(`mail to ${payload.to} was not sent`, { cause: refused });
  }
}
