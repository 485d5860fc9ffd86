// Compile-time promises of batch handlers, decorated or not: a list goes in where there is `batch`, one delivery where
// there is none. Each line that must not compile stands beside one that does.
/* oxlint-disable typescript/no-unused-vars -- parameters are there for their types */
import { defineHandler, poison, retry, seconds, success } from 'pulsework';
import type { BatchOutcome, Delivery, HandlerDefinition, Outcome } from 'pulsework';
import { Handler, Subscribe } from 'pulsework/decorators';
import { expectTypeOf } from 'vitest';
import { orders, shipments, valibotShipment, zodOrder } from './topics.js';

type Order = { id: string; cents: number };
type Shipment = { parcel: string; sentAt: Date };
const named = { name: 'billing', subscription: 'billing' };
const batch = { maxMessages: 100, maxWaitMs: seconds(1), maxBytes: 1_000_000 };

// The deliveries' type follows from the source.
export const handlers: readonly HandlerDefinition[] = [
  defineHandler({
    ...named,
    source: orders,
    batch: { maxMessages: 10 },
    handle: (deliveries) => {
      expectTypeOf(deliveries).toEqualTypeOf<readonly Delivery<Order>[]>();
      return deliveries.map(({ payload }) => (payload.cents > 0 ? success() : poison('free')));
    },
  }),
  defineHandler({
    ...named,
    source: [orders, shipments],
    batch,
    handle: (deliveries) => {
      expectTypeOf(deliveries).toEqualTypeOf<readonly Delivery<Order | Shipment>[]>();
      return success();
    },
  }),
  defineHandler({
    ...named,
    source: { pattern: /^shipments-/ },
    payload: valibotShipment,
    batch: {},
    handle: async (deliveries) => {
      expectTypeOf(deliveries).toEqualTypeOf<readonly Delivery<Shipment>[]>();
      return deliveries.map(() => success());
    },
  }),
  defineHandler({
    ...named,
    source: 'orders',
    batch,
    handle: (deliveries) => {
      expectTypeOf(deliveries).toEqualTypeOf<readonly Delivery[]>();
      return retry();
    },
  }),
  defineHandler({
    ...named,
    source: orders,
    batch: undefined,
    handle: (delivery) => {
      expectTypeOf(delivery).toEqualTypeOf<Delivery<Order>>();
      return success();
    },
  }),
];

// One outcome for all, one each, now or later.
defineHandler({ ...named, source: orders, batch, handle: () => success() });
defineHandler({ ...named, source: orders, batch, handle: async () => [success(), retry()] });
defineHandler({ ...named, source: orders, batch, handle: (all) => Promise.all(all.map(async () => success())) });
defineHandler({ ...named, source: orders, batch, handle: (all) => (all.length > 9 ? success() : [success()]) });
defineHandler({ ...named, source: orders, batch, handle: (): Promise<BatchOutcome> => Promise.resolve(success()) });
defineHandler({ ...named, source: orders, batch, handle: (_: readonly Delivery<{ id: string }>[]) => success() });

// @ts-expect-error one delivery, with `batch`
defineHandler({ ...named, source: orders, batch, handle: (_: Delivery<Order>) => success() });
// @ts-expect-error a list, without `batch`
defineHandler({ ...named, source: orders, handle: (_: readonly Delivery<Order>[]) => success() });
// @ts-expect-error a list of outcomes, without `batch`
defineHandler({ ...named, source: orders, handle: () => [success()] });
// @ts-expect-error a list that the handler might change
defineHandler({ ...named, source: orders, batch, handle: (_: Delivery<Order>[]) => success() });
// @ts-expect-error another payload
defineHandler({ ...named, source: orders, batch, handle: (_: readonly Delivery<Shipment>[]) => success() });
const parcels = { ...named, source: 'parcels', payload: valibotShipment, batch };
defineHandler({ ...parcels, handle: (_: readonly Delivery<Shipment>[]) => success() });
// @ts-expect-error another payload than the schema's
defineHandler({ ...parcels, handle: (_: readonly Delivery<Order>[]) => success() });
// @ts-expect-error gives nothing
defineHandler({ ...named, source: orders, batch, handle: () => {} });
// @ts-expect-error perhaps no outcome for one of them
defineHandler({ ...named, source: orders, batch, handle: (all) => all.map((_, i) => (i > 0 ? success() : undefined)) });
// @ts-expect-error a list of promises is not awaited
defineHandler({ ...named, source: orders, batch, handle: (all) => all.map(async () => success()) });
// @ts-expect-error objects that look like outcomes
defineHandler({ ...named, source: orders, batch, handle: () => [{ kind: 'success', messages: [] }] });
// @ts-expect-error an unknown limit
defineHandler({ ...named, source: orders, batch: { maxMessages: 1, maxWait: 5 }, handle: () => success() });
// @ts-expect-error limits are in an object
defineHandler({ ...named, source: orders, batch: true, handle: () => success() });

@Handler({ subscription: 'billing' })
export class Taken {
  @Subscribe(orders, { batch: { maxMessages: 100, maxWaitMs: seconds(1) } })
  async each(all: readonly Delivery<Order>[]): Promise<Outcome[]> {
    return all.map(({ payload }) => (payload.cents > 0 ? success() : poison('free')));
  }
  @Subscribe(orders, { batch: {} })
  oneForAll(_: readonly Delivery<Order>[]): Outcome {
    return success();
  }
  @Subscribe(orders, { batch: {} })
  oneOrEach(all: readonly Delivery<Order>[]) {
    return all.length > 9 ? success() : all.map(() => retry());
  }
  @Subscribe('orders', { payload: zodOrder, batch: {} })
  nameWithSchema(_: readonly Delivery<Order>[]): Outcome {
    return success();
  }
  @Subscribe([orders, shipments], { batch: {}, concurrency: 2 })
  listOfTopics(_: readonly Delivery<Order | Shipment>[]): Outcome {
    return success();
  }
  @Subscribe(orders, { batch: undefined })
  withoutBatch(_: Delivery<Order>): Outcome {
    return success();
  }
}

export class Refused {
  // @ts-expect-error one delivery, with `batch`
  @Subscribe(orders, { batch: {} })
  single(_: Delivery<Order>): Outcome {
    return success();
  }
  // @ts-expect-error a list, without `batch`
  @Subscribe(orders)
  list(_: readonly Delivery<Order>[]): Outcome {
    return success();
  }
  // @ts-expect-error a list of outcomes, without `batch`
  @Subscribe(orders)
  listOfOutcomes(): Outcome[] {
    return [success()];
  }
  // @ts-expect-error another payload
  @Subscribe(orders, { batch: {} })
  otherPayload(_: readonly Delivery<Shipment>[]): Outcome {
    return success();
  }
  // @ts-expect-error perhaps no outcome for one of them
  @Subscribe(orders, { batch: {} })
  perhaps(all: readonly Delivery<Order>[]) {
    return all.map(({ attempt }) => (attempt > 1 ? success() : undefined));
  }
  // @ts-expect-error gives nothing
  @Subscribe(orders, { batch: {} })
  nothing(_: readonly Delivery<Order>[]): void {}
  // @ts-expect-error an unknown limit
  @Subscribe(orders, { batch: { maxMesages: 5 } })
  unknownLimit(_: readonly Delivery<Order>[]): Outcome {
    return success();
  }
}

// @ts-expect-error `batch` belongs to a method
@Handler({ subscription: 'billing', batch: { maxMessages: 5 } })
export class BatchOnClass {}
