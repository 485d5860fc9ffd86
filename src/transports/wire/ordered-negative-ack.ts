// Negative acknowledgements that keep the order of a key (PIP-493): what tells the broker which messages failed and which
// go back behind them, and what is told where a subscription needs that and its broker cannot.
import { TransportError } from '../../core/errors.js';
import { minutes } from '../../core/options.js';
import type { SubscriptionSpec } from '../../core/subscription-spec.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import { LimitedLogger } from '../../system/limited-logger.js';
import type { Connection } from './connection.js';
import type { CommandBody } from './protocol/commands.js';
import type { MessageIdData } from './protocol/message-metadata.js';

type Wanted = Pick<SubscriptionSpec, 'orderedNegativeAck'>;

/** As many ids as acknowledgements have in one command. */
const MAX_IDS = 1_000;

/** All that failed comes first: what goes back must not be sent again before the broker knows behind what it waits. */
export function orderedNegativeAcks(
  consumerId: number,
  failed: readonly MessageIdData[],
  returned: readonly MessageIdData[],
): readonly CommandBody<'NEGATIVE_ACK'>[] {
  const bodies: CommandBody<'NEGATIVE_ACK'>[] = [];
  for (let at = 0; at < failed.length + returned.length; at += MAX_IDS) {
    const returnedAt = at - failed.length;
    bodies.push({
      consumerId,
      negativeAcked: failed.slice(at, at + MAX_IDS),
      returned: returned.slice(Math.max(0, returnedAt), Math.max(0, returnedAt + MAX_IDS)),
    });
  }
  return bodies;
}

/** Whether the broker of a connection keeps the order of a key whose message failed, and is asked for it. */
export function keepsOrder(
  { orderedNegativeAck: mode = 'disabled' }: Wanted,
  connection: Connection | undefined,
): boolean {
  return mode !== 'disabled' && connection?.takesOrderedNegativeAck === true;
}

/** Whether it is required there, and the broker cannot. */
export function missesOrder({ orderedNegativeAck }: Wanted, connection: Connection): boolean {
  return orderedNegativeAck === 'required' && !connection.takesOrderedNegativeAck;
}

/** Why a subscription with such a topic is not opened. @param isSpoken whether this client was told to speak it. */
export function orderNotKept(topic: string, isSpoken: boolean): TransportError {
  const reason = isSpoken ? 'its broker does not have it' : 'it needs the option "experimentalOrderedNegativeAck"';
  const text = `${topic}: "orderedNegativeAck" is "required", and ${reason}`;
  return new TransportError('NOT_SUPPORTED', text, { retriable: false });
}

/** Tells of topics that are suspended, each once a minute at most. Close it with its subscription. */
export class SuspensionLog {
  readonly #logger: LimitedLogger | undefined;

  constructor(logger: Logger | undefined, clock: Clock) {
    const windowMs = minutes(1);
    this.#logger = logger === undefined ? undefined : new LimitedLogger({ logger, clock, maxRepeats: 1, windowMs });
  }

  suspended(subscription: string, topic: string): void {
    const text = `subscription "${subscription}" takes nothing from ${topic}`;
    this.#logger?.error(`${text}: "orderedNegativeAck" is "required", and its broker does not have it`);
  }

  close(): void {
    this.#logger?.close();
  }
}
