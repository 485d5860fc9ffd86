// One run of a handler: what can interrupt it, and the Delivery that user code sees. The AbortController is made only
// when the handler reads `signal`, because most never do and it costs more than the rest of a run.
import type { Delivery } from '../core/delivery.js';
import type { MessageId } from '../core/message-id.js';
import type { MessageProperties } from '../core/properties.js';
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

/**
 * Plain fields, so that user code may spread and log it. A class and not a literal: a getter in a literal costs
 * microseconds per message.
 */
export class RunDelivery implements Delivery {
  readonly payload: unknown;
  readonly id: MessageId;
  readonly topic: string;
  readonly subscription: string;
  readonly handler: string;
  readonly key: string | undefined;
  readonly orderingKey: Uint8Array | undefined;
  readonly properties: MessageProperties;
  readonly publishTimeMs: number;
  readonly eventTimeMs: number | undefined;
  readonly attempt: number;
  readonly maxDeliveries: number;
  readonly redeliveryCount: number;
  readonly correlationId: string | undefined;
  readonly #record: DeliveryRecord;
  readonly #run: HandlerRun;

  constructor(record: DeliveryRecord, plan: HandlerPlan, payload: unknown, run: HandlerRun) {
    const { id, key, orderingKey, properties, publishTimeMs, eventTimeMs, redeliveryCount } = record.message;
    this.payload = payload;
    this.id = id;
    this.topic = record.originTopic;
    this.subscription = plan.spec.subscription;
    this.handler = plan.name;
    this.key = key instanceof Uint8Array ? Buffer.from(key).toString('base64') : key;
    this.orderingKey = orderingKey;
    this.properties = properties;
    this.publishTimeMs = publishTimeMs;
    this.eventTimeMs = eventTimeMs;
    this.attempt = record.attempt;
    this.maxDeliveries = plan.policy.maxDeliveries;
    this.redeliveryCount = redeliveryCount;
    this.correlationId = properties['pulsework-correlation-id'];
    this.#record = record;
    this.#run = run;
  }

  get originId(): string {
    return this.#record.originId;
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }
}
