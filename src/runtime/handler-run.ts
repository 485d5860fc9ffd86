// One run of a handler: what can interrupt it, and the Delivery that user code sees. The AbortController is made only
// when the handler reads `signal`, because most never do and it costs more than the rest of a run.
import type { Delivery } from '../core/delivery.js';
import { PulseworkError } from '../core/errors.js';
import type { MessageId } from '../core/message-id.js';
import { positionText } from '../core/message-id.js';
import { shownKey } from '../core/message-key.js';
import type { MessageProperties } from '../core/properties.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { HandlerPlan } from './handler-plan.js';

/** The call that several runs share. */
export interface BatchRun {
  /** Its slot is free again. False when another run of the same call has been counted for it. */
  giveUp(): boolean;
}

export class HandlerRun {
  #controller: AbortController | undefined;
  #interruption: Error | undefined;
  #phase: 'reading' | 'collecting' | 'running' | 'ended' = 'reading';
  #batch: BatchRun | undefined;
  #limited = true;
  #onLimited: ((limited: boolean) => void) | undefined;
  #onCollecting: ((collecting: boolean) => void) | undefined;

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#interruption !== undefined) this.#controller.abort(this.#interruption);
    return this.#controller.signal;
  }

  /** Why the run was told to end early; undefined while it was not. */
  get interruption(): Error | undefined {
    return this.#interruption;
  }

  /** Whether it waits for its batch to start. */
  get collecting(): boolean {
    return this.#phase === 'collecting';
  }

  /** Whether its time limit counts: not while it waits for its batch, nor while a database begins or commits what it does. */
  get limited(): boolean {
    return this.#limited;
  }

  /** Whether the handler has it: before that, nothing can have been done for it. */
  get begun(): boolean {
    return this.#phase === 'running';
  }

  /** Calls `changed` when the wait for a batch begins and when it is over. */
  whenCollecting(changed: (collecting: boolean) => void): void {
    this.#onCollecting = changed;
  }

  /** Calls `changed` with each change of `limited`. */
  whenLimited(changed: (limited: boolean) => void): void {
    this.#onLimited = changed;
  }

  /** From here on its time limit counts, anew, or does not. */
  limit(counts: boolean): void {
    this.#limited = counts;
    this.#onLimited?.(counts);
  }

  /** It waits for its batch. */
  collect(): void {
    this.#phase = 'collecting';
    this.limit(false);
    this.#onCollecting?.(true);
  }

  /** The handler gets it now, alone or in a batch. */
  begin(batch?: BatchRun): void {
    this.#phase = 'running';
    this.#batch = batch;
    if (batch === undefined) return;
    this.limit(true);
    this.#onCollecting?.(false);
  }

  /** It may not start now. @returns what its plugins are told. */
  putOff(): Error {
    const reason = new PulseworkError('DELIVERY_PUT_OFF', 'the delivery may not start now; it runs later');
    this.interrupt(reason);
    return reason;
  }

  end(): void {
    this.#phase = 'ended';
  }

  /** Its slot is needed. False when another run of its batch has been counted for it. */
  giveUp(): boolean {
    return this.#batch?.giveUp() ?? true;
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
    this.key = shownKey(key);
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

  /** What the machine knows of a delivery that it made. */
  static partsOf(delivery: Delivery): { readonly record: DeliveryRecord; readonly run: HandlerRun } {
    if (!(#record in delivery)) throw new Error('this delivery was not made by the runtime');
    return { record: delivery.#record, run: delivery.#run };
  }

  get position(): string {
    return positionText(this.id);
  }

  get originId(): string {
    return this.#record.originId;
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }
}
