// One run of a handler: what can interrupt it, and the Delivery that user code sees. The AbortController is made only
// when the handler reads `signal`, because most never do and it costs more than the rest of a run.
import type { Delivery } from '../core/delivery.js';
import { withoutPartition } from '../core/topic-name.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { HandlerPlan } from './handler-plan.js';

export class HandlerRun {
  #controller: AbortController | undefined;
  #interruption: Error | undefined;

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#interruption !== undefined) this.#controller.abort(this.#interruption);
    return this.#controller.signal;
  }

  /** Why the run was told to end early; undefined while it was not. */
  get interruption(): Error | undefined {
    return this.#interruption;
  }

  /** Tells the handler to end. The first reason stays. */
  interrupt(reason: Error): void {
    if (this.#interruption !== undefined) return;
    this.#interruption = reason;
    this.#controller?.abort(reason);
  }
}

/** Plain fields, so that user code may spread and log it; only `signal` is made when it is read. */
export function deliveryOf(record: DeliveryRecord, plan: HandlerPlan, payload: unknown, run: HandlerRun): Delivery {
  const { id, key, orderingKey, properties, publishTimeMs, eventTimeMs, redeliveryCount } = record.message;
  return {
    payload,
    id,
    topic: withoutPartition(id.topic),
    subscription: plan.spec.subscription,
    handler: plan.name,
    key: key instanceof Uint8Array ? Buffer.from(key).toString('base64') : key,
    orderingKey,
    properties,
    publishTimeMs,
    eventTimeMs,
    attempt: record.attempt,
    maxDeliveries: plan.policy.maxDeliveries,
    redeliveryCount,
    correlationId: properties['pulsework-correlation-id'],
    get signal() {
      return run.signal;
    },
  };
}
