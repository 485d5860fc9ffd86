// Who keeps a message until its time has come: the broker, or this client for brokers, subscription types and clients
// that cannot (Y-20 to Y-26). The time travels in the message.
import type { DelayedDelivery } from '../core/handler-definition.js';
import type { EncodedMessage } from '../core/message.js';
import { copyProperties } from '../core/properties.js';
import type { SubscriptionType } from '../core/subscription-spec.js';
import { redeliversSingly } from '../core/subscription-spec.js';
import type { Capability } from '../ports/transport.js';

/** Carries the time where a transport cannot set it, epoch milliseconds. */
const DELIVER_AT = 'pulsework-deliver-at';

/** Brokers delay on Shared and Key_Shared only (Y-02). */
export function delaysInClient(
  choice: DelayedDelivery,
  type: SubscriptionType,
  capabilities: ReadonlySet<Capability>,
): boolean {
  if (choice !== 'auto') return choice === 'client';
  return !redeliversSingly(type) || !capabilities.has('delayed-delivery');
}

/** Not to be delivered before, epoch milliseconds; 0 where the message says nothing. */
export function deliverAtMsOf({ deliverAtMs, properties }: EncodedMessage): number {
  if (deliverAtMs !== undefined) return deliverAtMs;
  const written = properties[DELIVER_AT];
  return written !== undefined && /^\d{1,15}$/.test(written) ? Number(written) : 0;
}

/** The message as it is published over a transport that cannot set the time by itself. */
export function withDeliverAt(message: EncodedMessage, capabilities: ReadonlySet<Capability>): EncodedMessage {
  if (message.deliverAtMs === undefined || capabilities.has('delayed-delivery')) return message;
  const properties = copyProperties(message.properties);
  properties[DELIVER_AT] = String(message.deliverAtMs);
  return { ...message, properties };
}
