// One run of a handler: the Delivery that user code sees, and the means to interrupt it. The AbortController is made
// only when the handler reads `signal`, because most never do and it costs more than the rest of a run.
import type { Delivery } from '../core/delivery.js';
import type { MessageId } from '../core/message-id.js';
import type { MessageProperties } from '../core/properties.js';
import { withoutPartition } from '../core/topic-name.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { HandlerPlan } from './handler-plan.js';

export class HandlerRun implements Delivery {
  readonly payload: unknown;
  readonly attempt: number;
  readonly #record: DeliveryRecord;
  readonly #plan: HandlerPlan;
  #controller: AbortController | undefined;
  #interruption: Error | undefined;

  constructor(record: DeliveryRecord, plan: HandlerPlan, payload: unknown) {
    this.#record = record;
    this.#plan = plan;
    this.payload = payload;
    this.attempt = record.attempt;
  }

  get id(): MessageId {
    return this.#record.message.id;
  }
  get topic(): string {
    return withoutPartition(this.#record.message.id.topic);
  }
  get subscription(): string {
    return this.#plan.spec.subscription;
  }
  get handler(): string {
    return this.#plan.name;
  }
  get key(): string | undefined {
    const { key } = this.#record.message;
    return key instanceof Uint8Array ? Buffer.from(key).toString('base64') : key;
  }
  get orderingKey(): Uint8Array | undefined {
    return this.#record.message.orderingKey;
  }
  get properties(): MessageProperties {
    return this.#record.message.properties;
  }
  get publishTimeMs(): number {
    return this.#record.message.publishTimeMs;
  }
  get eventTimeMs(): number | undefined {
    return this.#record.message.eventTimeMs;
  }
  get maxDeliveries(): number {
    return this.#plan.policy.maxDeliveries;
  }
  get redeliveryCount(): number {
    return this.#record.message.redeliveryCount;
  }
  get correlationId(): string | undefined {
    return this.#record.message.properties['pulsework-correlation-id'];
  }

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
