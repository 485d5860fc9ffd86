// Compile-time promises of @Handler and @Subscribe. Each refused method stands beside one that is taken.
/* oxlint-disable typescript/no-unused-vars, typescript/no-unsafe-argument -- parameters are there for their types; some types are wrong on purpose */
import { Container } from 'inversify';
import { exponentialBackoff, minutes, on, poison, retryAfter, seconds, success, textCodec } from 'pulsework';
import type { Delivery, HandlerResolver, Outcome } from 'pulsework';
import { Handler, Subscribe } from 'pulsework/decorators';
import { inversifyResolver } from 'pulsework/inversify';
import { images, orders, shipments, unchecked, valibotShipment, zodOrder } from './topics.js';

type Order = { id: string; cents: number };
type Shipment = { parcel: string; sentAt: Date };

class CardDeclined extends Error {}
class GatewayBusy extends Error {
  readonly retryAfterMs = 500;
}

@Handler({
  subscription: 'billing',
  redelivery: { maxDeliveries: 5, backoff: exponentialBackoff({ minMs: seconds(1), maxMs: minutes(10) }) },
})
export class Billing {
  constructor(private readonly shop: string) {}

  @Subscribe(orders, {
    type: 'key-shared',
    concurrency: 16,
    publishes: [shipments],
    onError: [on(CardDeclined, poison), on(GatewayBusy, (error) => retryAfter(error.retryAfterMs))],
  })
  async charge(order: Delivery<Order>): Promise<Outcome> {
    return success(shipments.message({ parcel: `${this.shop}-${order.payload.id}`, sentAt: '2026-01-01' }));
  }
}

export class Taken {
  @Subscribe(orders)
  sync(order: Delivery<Order>): Outcome {
    return order.payload.cents > 0 ? success() : poison('free');
  }
  @Subscribe(orders)
  syncOrAsync(order: Delivery<Order>): Outcome | Promise<Outcome> {
    return order.attempt > 1 ? success() : Promise.resolve(success());
  }
  @Subscribe(orders)
  inferred(order: Delivery<Order>) {
    return order.attempt > 1 ? success() : poison('first');
  }
  @Subscribe(orders)
  fewerParameters(): Outcome {
    return success();
  }
  @Subscribe(orders)
  widerPayload(_order: Delivery<{ readonly id: string }>): Outcome {
    return success();
  }
  @Subscribe(orders)
  anyPayload(_order: Delivery): Outcome {
    return success();
  }
  @Subscribe(orders)
  private hidden(): Outcome {
    return success();
  }
  @Subscribe(orders)
  protected guarded(): Outcome {
    return this.hidden();
  }
  @Subscribe([orders, shipments])
  listOfTopics(_delivery: Delivery<Order | Shipment>): Outcome {
    return success();
  }
  @Subscribe(shipments)
  valibot(_delivery: Delivery<Shipment>): Outcome {
    return success();
  }
  @Subscribe(unchecked)
  topicWithoutSchema(_delivery: Delivery): Outcome {
    return success();
  }
  @Subscribe('orders')
  name(_delivery: Delivery): Outcome {
    return success();
  }
  @Subscribe('orders', { payload: zodOrder, subscription: 'named' })
  nameWithSchema(_delivery: Delivery<Order>): Outcome {
    return success();
  }
  @Subscribe('lines', { codec: textCodec })
  nameWithCodec(_delivery: Delivery<string>): Outcome {
    return success();
  }
  @Subscribe(images)
  topicWithCodec(_delivery: Delivery<Uint8Array>): Outcome {
    return success();
  }
  @Subscribe({ pattern: /^orders-/ })
  pattern(_delivery: Delivery): Outcome {
    return success();
  }
  @Subscribe({ pattern: /^shipments-/ }, { payload: valibotShipment })
  patternWithSchema(_delivery: Delivery<Shipment>): Outcome {
    return success();
  }
  @Subscribe(orders, { timeoutMs: undefined, subscription: undefined, payload: undefined })
  absentOptions(): Outcome {
    return success();
  }
  @Subscribe(orders)
  @Subscribe('orders', { payload: zodOrder })
  twice(_order: Delivery<Order>): Outcome {
    return success();
  }
}

export class WrongPayload {
  // @ts-expect-error another payload
  @Subscribe(orders)
  other(_order: Delivery<Shipment>): Outcome {
    return success();
  }
  // @ts-expect-error the schema's input, not its output
  @Subscribe(orders)
  input(_order: Delivery<{ id: string; cents: string }>): Outcome {
    return success();
  }
  // @ts-expect-error the payload itself instead of the delivery
  @Subscribe(orders)
  bare(_order: Order): Outcome {
    return success();
  }
  // @ts-expect-error only one of the two payloads
  @Subscribe([orders, shipments])
  half(_delivery: Delivery<Order>): Outcome {
    return success();
  }
  // @ts-expect-error a topic without a schema says nothing about payloads
  @Subscribe(unchecked)
  guessed(_delivery: Delivery<Order>): Outcome {
    return success();
  }
  // @ts-expect-error a name says nothing about payloads
  @Subscribe('orders')
  guessedByName(_delivery: Delivery<Order>): Outcome {
    return success();
  }
  // @ts-expect-error a pattern says nothing about payloads
  @Subscribe({ pattern: /^orders-/ })
  guessedByPattern(_delivery: Delivery<Order>): Outcome {
    return success();
  }
  // @ts-expect-error another payload than the codec's
  @Subscribe('lines', { codec: textCodec })
  otherThanCodec(_delivery: Delivery<Uint8Array>): Outcome {
    return success();
  }
  // @ts-expect-error another payload than the schema's
  @Subscribe('orders', { payload: zodOrder })
  otherThanSchema(_delivery: Delivery<Shipment>): Outcome {
    return success();
  }
  // @ts-expect-error more parameters than a handler gets
  @Subscribe(orders)
  tooMany(_order: Delivery<Order>, _more: string): Outcome {
    return success();
  }
}

export class NoOutcome {
  // @ts-expect-error gives nothing
  @Subscribe(orders)
  nothing(): void {
    return;
  }
  // @ts-expect-error nothing, later
  @Subscribe(orders)
  async nothingLater(): Promise<void> {
    return;
  }
  // @ts-expect-error perhaps nothing
  @Subscribe(orders)
  perhaps(order: Delivery<Order>): Outcome | undefined {
    return order.attempt > 1 ? success() : undefined;
  }
  // @ts-expect-error perhaps nothing, later
  @Subscribe(orders)
  async perhapsLater(order: Delivery<Order>): Promise<Outcome | undefined> {
    return order.attempt > 1 ? success() : undefined;
  }
  // @ts-expect-error perhaps nothing, inferred
  @Subscribe(orders)
  async perhapsInferred(order: Delivery<Order>) {
    return order.attempt > 1 ? success() : undefined;
  }
  // @ts-expect-error an object that looks like an outcome
  @Subscribe(orders)
  lookAlike() {
    return { kind: 'success' as const, messages: [] };
  }
  // @ts-expect-error the function that makes an outcome, not an outcome
  @Subscribe(orders)
  notCalled() {
    return success;
  }
  // @ts-expect-error a generator is not an outcome
  @Subscribe(orders)
  *generator(): Generator<Outcome> {
    yield success();
  }
  @Subscribe(orders)
  wrongOutgoing(): Outcome {
    // @ts-expect-error a wrong outgoing payload
    return success(shipments.message({ parcel: 1, sentAt: '2026-01-01' }));
  }
}

export class WrongPlace {
  // @ts-expect-error a static method belongs to no instance
  @Subscribe(orders)
  static onClass(): Outcome {
    return success();
  }
  // @ts-expect-error a field is not a method
  @Subscribe(orders)
  field = (): Outcome => success();
  // @ts-expect-error an accessor is not a method
  @Subscribe(orders)
  get accessor(): Outcome {
    return success();
  }
  // @ts-expect-error @Handler is for classes
  @Handler({ subscription: 'billing' })
  method(): Outcome {
    return success();
  }
}

export class WrongOptions {
  // @ts-expect-error an unknown option
  @Subscribe(orders, { conccurency: 4 })
  unknownOption(): Outcome {
    return success();
  }
  // @ts-expect-error not a subscription type
  @Subscribe(orders, { type: 'keyshared' })
  wrongType(): Outcome {
    return success();
  }
  // @ts-expect-error a topic has its schema already
  @Subscribe(orders, { payload: zodOrder })
  schemaTwice(): Outcome {
    return success();
  }
  // @ts-expect-error a topic's name is not a topic
  @Subscribe(orders, { publishes: ['shipments'] })
  publishesName(): Outcome {
    return success();
  }
  // @ts-expect-error the rule reads a field that the error does not have
  @Subscribe(orders, { onError: [on(GatewayBusy, (error) => retryAfter(error.retryAfter))] })
  wrongRule(): Outcome {
    return success();
  }
  // @ts-expect-error not a source
  @Subscribe(/orders/)
  wrongSource(): Outcome {
    return success();
  }
  // @ts-expect-error without a source
  @Subscribe()
  noSource(): Outcome {
    return success();
  }
}

// @Handler takes no options, defaults for all methods, and classes with any constructor.
@Handler()
export class WithoutDefaults {}

@Handler({ subscription: 'abstract' })
export abstract class Abstract {
  abstract charge(): Outcome;
}

// @ts-expect-error an unknown option
@Handler({ subscripton: 'billing' })
export class UnknownDefault {}

// @ts-expect-error a source belongs to a method
@Handler({ subscription: 'billing', source: orders })
export class SourceOnClass {}

// @ts-expect-error a decorator is called with its options
@Handler
export class NotCalled {}

// A container's resolver is what the runtime takes.
export const resolver: HandlerResolver = inversifyResolver(new Container());
// @ts-expect-error the container is not optional
inversifyResolver();
