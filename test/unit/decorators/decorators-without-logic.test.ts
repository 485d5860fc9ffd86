// Decorators hold no logic: whatever they can do, defineHandler() can. For each feature the runtime makes the same handler of both.
import {
  bytesCodec,
  defineHandler,
  effects,
  fixedBackoff,
  idempotent,
  jsonCodec,
  memoryIdempotencyStore,
  on,
  poison,
  retry,
  skip,
  success,
  textCodec,
  topic,
} from 'pulsework';
import type { Delivery, HandlerDefinition, HandlerOptions, Outcome } from 'pulsework';
import { Handler, Subscribe } from 'pulsework/decorators';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { readHandlerClass } from '../../../src/runtime/handler-classes.js';

const schema = z.object({ id: z.string() });
type Order = z.infer<typeof schema>;
const orders = topic('orders', { payload: schema });
const refunds = topic('refunds', { payload: schema });
const pattern = { pattern: /^orders-/ };
const everyOption = {
  type: 'key-shared',
  initialPosition: 'latest',
  concurrency: 3,
  ordering: 'key',
  prefetch: 7,
  redelivery: { maxDeliveries: 4, backoff: fixedBackoff(5) },
  timeoutMs: 100,
  abandonAfterMs: 200,
  onError: [on(RangeError, poison)],
  idempotent: idempotent({ key: () => 'k', store: memoryIdempotencyStore(), ttlMs: 1 }),
  outage: [{ dependency: 'bank', errors: [TypeError] }],
  effects: effects({
    store: { name: 'none', open: async () => undefined, begin: async () => ({ kind: 'busy', remainingMs: 1 }) },
    ttlMs: 17,
  }),
  transactional: { timeoutMs: 16 },
  publishes: [refunds],
  deadLetter: 'block',
  onDeadLetter: 'block-key',
  orderedNegativeAck: 'required',
  deadLetterTopic: 'graveyard',
  deadLetterSubscription: 'keepers',
  onDeadLetterRefused: { fallbackTopic: 'last-resort' },
  retryTopic: 'later',
  ackTimeoutMs: 5_000,
  ackTimeoutBackoff: fixedBackoff(1),
  delayedDelivery: 'client',
  maxHeld: 11,
  maxHeldBytes: 12,
  maxLaneMessages: 13,
  fairness: { by: ({ properties }) => properties['tenant'], maxConcurrent: 2, ratePerSecond: 14 },
  deliveryPause: { windowSize: 15 },
  redact: [/secret/],
} as const satisfies Required<HandlerOptions>;

@Handler({ subscription: 'billing' })
class Billing {
  constructor(readonly reason = 'from the instance') {}

  @Subscribe(orders)
  oneTopic(order: Delivery<Order>): Outcome {
    return skip(`${this.reason}: ${order.payload.id}`);
  }
  @Subscribe([orders, refunds])
  severalTopics(order: Delivery<Order>): Outcome {
    return skip(order.payload.id);
  }
  @Subscribe('orders')
  name(): Outcome {
    return success();
  }
  @Subscribe('orders', { payload: schema, codec: jsonCodec })
  nameWithSchema(order: Delivery<Order>): Outcome {
    return skip(order.payload.id);
  }
  @Subscribe(pattern, { codec: textCodec })
  pattern(): Outcome {
    return success();
  }
  @Subscribe(pattern, { payload: schema, codec: bytesCodec })
  patternWithSchema(order: Delivery<Order>): Outcome {
    return skip(order.payload.id);
  }
  @Subscribe(orders, { subscription: 'own' })
  ownSubscription(): Outcome {
    return success();
  }
  @Subscribe(orders, everyOption)
  everyOption(): Outcome {
    return success();
  }
  @Subscribe(orders, { batch: { maxMessages: 7 } })
  batch(all: readonly Delivery<Order>[]): Outcome[] {
    return all.map(() => success());
  }
}

const handle = (): Outcome => success();
const subscription = 'billing';
const defined: readonly HandlerDefinition[] = [
  defineHandler({ name: 'Billing.oneTopic', subscription, source: orders, handle }),
  defineHandler({ name: 'Billing.severalTopics', subscription, source: [orders, refunds], handle }),
  defineHandler({ name: 'Billing.name', subscription, source: 'orders', handle }),
  defineHandler({
    name: 'Billing.nameWithSchema',
    subscription,
    source: 'orders',
    payload: schema,
    codec: jsonCodec,
    handle,
  }),
  defineHandler({ name: 'Billing.pattern', subscription, source: pattern, codec: textCodec, handle }),
  defineHandler({
    name: 'Billing.patternWithSchema',
    subscription,
    source: pattern,
    payload: schema,
    codec: bytesCodec,
    handle,
  }),
  defineHandler({ name: 'Billing.ownSubscription', subscription: 'own', source: orders, handle }),
  defineHandler({ name: 'Billing.everyOption', subscription, source: orders, handle, ...everyOption }),
  defineHandler({ name: 'Billing.batch', subscription, source: orders, handle, batch: { maxMessages: 7 } }),
];

/** The runtime's own definitions of a decorated class, running on `instance`. */
function compiled(handlerClass: new () => object, instance: object = new handlerClass()): readonly HandlerDefinition[] {
  const { handlers, problems } = readHandlerClass(handlerClass, true, 0);
  expect(problems).toEqual([]);
  handlers?.bind(instance);
  return handlers?.definitions ?? [];
}

/** What can be compared: not the function, and an empty policy is as good as none. */
function comparable(definition: HandlerDefinition): object {
  const { redelivery, ...others } = definition.options;
  const options = Object.keys(redelivery ?? {}).length === 0 ? others : definition.options;
  return { ...definition, handle: undefined, options };
}

it('covers every handler method of the class', () => {
  expect(compiled(Billing)).toHaveLength(defined.length);
});

it.each(defined.map((definition, index) => ({ name: definition.name, definition, index })))(
  '$name is the handler that defineHandler makes',
  ({ definition, index }) => {
    expect(comparable(compiled(Billing)[index]!)).toEqual(comparable(definition));
  },
);

it('runs the method on the instance, with the delivery', () => {
  const [oneTopic] = compiled(Billing);
  const run = oneTopic?.handle as ((delivery: unknown) => Outcome) | undefined;

  expect(run?.({ payload: { id: 'A-1' } })).toEqual(skip('from the instance: A-1'));
});

it('takes from @Handler what @Subscribe does not set, and nothing else', () => {
  @Handler({ ...everyOption, subscription: 'billing' })
  class Defaults {
    @Subscribe(orders, { concurrency: 99, timeoutMs: undefined, redelivery: { maxDeliveries: 2 } })
    charge(): Outcome {
      return retry();
    }
  }

  expect(compiled(Defaults)[0]?.options).toEqual({
    ...everyOption,
    concurrency: 99,
    redelivery: { ...everyOption.redelivery, maxDeliveries: 2 },
  });
});
