import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { HandlerClass, HandlerDefinition, Plugin, RuntimeOptions } from '../../../src/index.js';
import {
  ConfigurationError,
  PulseworkError,
  Runtime,
  defineHandler,
  idempotent,
  memoryIdempotencyStore,
  success,
  topic,
} from '../../../src/index.js';
import { Handler, Subscribe } from '../../../decorators/index.js';
import { embedded } from '../../../src/embedded.js';
import { FakeClock } from '../../../src/testing.js';
import { World } from '../../support/runtime-world.js';
import { transportWith } from '../../support/transport-with.js';

let world: World;
beforeEach(() => void (world = new World()));
afterEach(() => world.end());

const orders = topic('orders', { payload: z.object({ id: z.string() }) });
const handler = (name: string, over: object = {}): HandlerDefinition =>
  defineHandler({ name, source: orders, subscription: name, handle: () => success(), ...over });

async function problemsOf(options: Partial<RuntimeOptions>): Promise<readonly string[]> {
  const error = await Runtime.start({ transport: embedded({ broker: world.broker }), handlers: [], ...options }).catch(
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ConfigurationError);
  return (error as ConfigurationError).problems;
}

describe('what is wrong with the options', () => {
  it('is also what the transport cannot do', async () => {
    const transport = transportWith(embedded({ broker: world.broker }), { capabilities: new Set() });
    expect(await problemsOf({ transport, handlers: [handler('h', { source: { pattern: /x/ } })] })).toEqual([
      'handler "h": the embedded transport cannot subscribe by pattern; list the topics',
    ]);
  });

  it('is all said at once, each with option, value and remedy', async () => {
    const problems = await problemsOf({
      namespace: 'acme',
      drainDeadlineMs: -1,
      handlers: [
        handler('a', { concurrency: -1, conccurency: 3, timeoutMs: NaN, redelivery: { maxDeliveries: 0, backof: 1 } }),
        handler('b', {
          type: 'exclusiv',
          initialPosition: 'newest',
          maxHeld: 1.5,
          onError: [() => success()],
          publishes: ['receipts'],
        }),
        handler('c', { ordering: 'key' }),
        handler('d', { ordering: 'partition', type: 'key-shared', abandonAfterMs: 5 }),
        handler('e', { source: undefined, subscription: '' }),
        handler('f', { source: [] }),
        handler('g', { source: 'a/b' }),
        handler('h', { source: { pattern: /a\/b/ } }),
        handler('i', { source: orders, payload: z.string() }),
      ],
    });
    expect(problems).toEqual([
      'runtime: "namespace" must be "tenant/namespace", got "acme"',
      'runtime: "drainDeadlineMs" must be a duration of 0 ms or more (in milliseconds), got -1',
      'handler "a": unknown option "conccurency", did you mean "concurrency"?',
      'handler "a": "concurrency" must be a positive integer, got -1',
      'handler "a": unknown option "redelivery.backof", did you mean "backoff"?',
      'handler "a": "redelivery.maxDeliveries" must be a positive integer, got 0',
      'handler "a": "timeoutMs" must be a duration of at least 1 ms (in milliseconds), got NaN',
      'handler "b": "type" must be one of exclusive, failover, shared, key-shared, got "exclusiv"',
      'handler "b": "initialPosition" must be one of earliest, latest, got "newest"',
      'handler "b": "maxHeld" must be a positive integer, got 1.5',
      'handler "b": "onError" takes results of on(ErrorClass, outcome), item 0 is a function',
      'handler "b": "publishes" takes results of topic(), item 0 is "receipts"',
      'handler "c": "ordering: key" cannot hold on a shared subscription, where another consumer may get the next message of a key; use type "key-shared"',
      'handler "d": "abandonAfterMs" says what follows a time limit; set "timeoutMs" too',
      'handler "d": "ordering: partition" cannot hold on a key-shared subscription, which spreads a partition over consumers; use type "failover"',
      'handler "e": "source" is missing; it must be a topic(), a list of them, a topic name or { pattern }',
      'handler "e": "subscription" must be a text that is not empty, got ""',
      'handler "f": its list of topics is empty; name at least one',
      'handler "g": topic name "a/b" is not valid: use "topic", "tenant/namespace/topic" or "persistent://tenant/namespace/topic"',
      'handler "h": its pattern must be like "orders-.*", "tenant/namespace/orders-.*" or "persistent://tenant/namespace/orders-.*", got "/a\\\\/b/"',
      'handler "i": "payload" and "codec" belong to topic(); they are for sources given by name or pattern',
    ]);
  });

  it('two handlers on one topic and subscription are named', async () => {
    const problems = await problemsOf({
      handlers: [handler('a', { subscription: 's' }), handler('b', { subscription: 's' })],
    });
    expect(problems).toEqual([
      'handlers "a" and "b" both use subscription "s" on persistent://public/default/orders; give one of them another subscription name',
    ]);
  });

  it('a dead letter topic that is a topic of its own handler is refused', async () => {
    const problems = await problemsOf({ handlers: [handler('a', { deadLetterTopic: 'orders' })] });
    expect(problems[0]).toContain('failed messages would go round for ever');
  });

  it('no transport, unknown option', async () => {
    const problems = await problemsOf({ transport: undefined as never, handelrs: [], handlers: [] } as never);
    expect(problems).toEqual([
      'runtime: "transport" is missing; it must be a transport such as embedded()',
      'runtime: unknown option "handelrs", did you mean "handlers"?',
    ]);
  });

  it('a handler without what it must have: nothing of it is found out by messages', async () => {
    const problems = await problemsOf({
      handlers: [
        defineHandler({ name: 'a', source: orders, subscription: 'a' } as never),
        defineHandler({ name: 'b', source: orders, subscription: 'b', handle: undefined } as never),
        defineHandler({ name: 'c', source: orders, subscription: 'c', batch: {} } as never),
        defineHandler({ name: 'd', source: orders, subscription: 'd', handler: () => success() } as never),
        defineHandler({ name: 'e', source: orders, subscription: 'e', handle: 'charge' } as never),
        defineHandler({} as never),
        defineHandler({ name: ' ', source: 5, subscription: 5, handle: () => success() } as never),
      ],
    });
    expect(problems).toEqual([
      'handler "a": "handle" is missing; it must be a function',
      'handler "b": "handle" is missing; it must be a function',
      'handler "c": "handle" is missing; it must be a function',
      'handler "d": "handle" is missing; it must be a function',
      'handler "d": unknown option "handler", did you mean "handle"?',
      'handler "e": "handle" must be a function, got "charge"',
      'a handler without a name: "source" is missing; it must be a topic(), a list of them, a topic name or { pattern }',
      'a handler without a name: "name" is missing; it must be a text that is not empty',
      'a handler without a name: "handle" is missing; it must be a function',
      'a handler without a name: "subscription" is missing; it must be the subscription\'s name',
      'a handler without a name: "subscription" must be a text that is not empty, got 5',
      'a handler without a name: "name" must be a text that is not empty, got " "',
      'a handler without a name: its source must be a topic(), a list of them, a topic name or { pattern }, got 5',
    ]);
  });

  it('with the remedy where a pattern is no RegExp, and where an option stands one level too high', async () => {
    const handlers = [
      handler('a', { source: { pattern: 'orders-.*' } }),
      handler('b', { source: /orders-.+/ }),
      handler('c', { maxDeliveries: 3, backoff: 5 }),
    ];
    expect(await problemsOf({ handlers })).toEqual([
      'handler "a": its pattern must be a RegExp such as /orders-.+/, got "orders-.*"',
      'handler "b": its source must be a topic(), a list of them, a topic name or { pattern }; write { pattern: /orders-.+/ }',
      'handler "c": "maxDeliveries" belongs to "redelivery"; write redelivery: { maxDeliveries }',
      'handler "c": "backoff" belongs to "redelivery"; write redelivery: { backoff }',
    ]);
  });

  it('every name that may stand beside a misspelt one, required ones too', async () => {
    class Colourful {
      @Subscribe(orders, { colour: 'red' } as never)
      handle() {
        return success();
      }
    }
    Handler({ subscription: 's' })(Colourful);
    const [ofFunction = '', ofMethod = ''] = await problemsOf({
      handlers: [handler('a', { colour: 'red' }), Colourful],
    });
    expect(ofFunction).toMatch(/known options are name, source, subscription, handle, batch, payload, codec, type, /);
    expect(ofMethod).toMatch(/"colour", known options are subscription, batch, payload, codec, type, /);
  });

  it('required options of a runtime that are null, and options that are none', async () => {
    expect(await problemsOf({ transport: null as never, handlers: {} as never })).toEqual([
      'runtime: "transport" must have the methods subscribe, publisher, close (e.g. embedded()), got null',
      'runtime: "handlers" must be a list of handler classes and results of defineHandler(), got an object',
    ]);
    await expect(Runtime.start(null as never)).rejects.toThrow('runtime: "options" must be an object, got null');
    await expect(Runtime.start({} as never)).rejects.toThrow(ConfigurationError);
    expect(() => defineHandler(undefined as never)).toThrow(
      'defineHandler: "options" must be an object such as { name, source, subscription, handle }, got undefined',
    );
  });

  it('what most likely was meant is said', async () => {
    const problems = await problemsOf({
      handlers: [
        handler('a', { batch: true, redelivery: 5 }),
        handler('b', { redelivery: { backoff: 500 }, outage: ['db'], source: [orders, 'receipts'] }),
        handler('c', { redelivery: { backoff: [1, 2] }, onDeadLetterRefused: { fallback: 'x' } }),
      ],
    });
    expect(problems).toEqual([
      'handler "a": "batch" must be an object such as {}, which takes the defaults, got true',
      'handler "a": "redelivery" must be an object such as { maxDeliveries, backoff }, got 5',
      'handler "b": its list of topics takes results of topic(), item 1 is "receipts"',
      'handler "b": "redelivery.backoff" must be a function such as fixedBackoff(500), got 500',
      'handler "b": "outage[0]" must be an object such as { dependency, errors }, got "db"',
      'handler "c": "redelivery.backoff" must be a function such as steppedBackoff([1, 2]), got an array of 2',
      'handler "c": unknown option "onDeadLetterRefused.fallback", known options are fallbackTopic',
      'handler "c": "onDeadLetterRefused" must be "hold", { fallbackTopic } or a function, got an object',
    ]);
  });

  it('an idempotent() made for another topic than the handler takes', async () => {
    const store = memoryIdempotencyStore();
    const guard = idempotent(orders, { key: ({ payload }) => payload.id, store, ttlMs: 1_000 });
    const problems = await problemsOf({
      handlers: [
        handler('a', { idempotent: guard }),
        handler('b', { source: [orders, topic('receipts')], idempotent: guard }),
      ],
    });
    expect(problems).toEqual(['handler "b": "idempotent" was made for orders, and the handler takes receipts too']);
  });

  it('classes without their decorators are named with the remedy', async () => {
    class Bare {}
    class Half {
      @Subscribe(orders)
      handle() {
        return success();
      }
    }
    @Handler({ subscription: 's' })
    class Empty {}
    const problems = await problemsOf({ handlers: [Bare, Half, Empty, 5 as unknown as HandlerClass] });
    expect(problems).toEqual([
      'class Bare: it has no decorators; put @Handler on it and @Subscribe on its methods',
      'class Half: its methods have @Subscribe but the class has no @Handler; put @Handler({ subscription }) on the class',
      'class Empty: @Handler is there but no method has @Subscribe',
      '"handlers" takes handler classes and results of defineHandler(), item 3 is 5',
    ]);
  });

  it('a class that cannot be made by new, and an instance in place of a class', async () => {
    @Handler({ subscription: 's' })
    class NeedsGateway {
      constructor(readonly gateway: object) {}
      @Subscribe(orders)
      handle() {
        return success();
      }
    }
    const problems = await problemsOf({ handlers: [NeedsGateway, new NeedsGateway({}) as unknown as HandlerClass] });
    expect(problems).toEqual([
      'class NeedsGateway: its constructor takes 1 argument; make it in "resolve", e.g. (C) => new C(...) or inversifyResolver(container)',
      '"handlers" takes handler classes and results of defineHandler(), item 1 is an instance of NeedsGateway; pass the class and make its instance in "resolve"',
    ]);
  });

  it('a clock that is not the clock of the transport', async () => {
    const problems = await problemsOf({ handlers: [handler('h')], clock: new FakeClock() });
    expect(problems).toEqual([
      'runtime: "clock" must be the transport\'s own clock: with two, delays would never end; leave it out',
    ]);
  });

  it('ports that are not what they should be', async () => {
    const problems = await problemsOf({
      handlers: [handler('h')],
      logger: {} as never,
      telemetry: 5 as never,
      resolve: 'x' as never,
      plugins: [null as never, { name: 'p', onSettld: () => undefined } as Plugin],
    });
    expect(problems).toEqual([
      'runtime: "logger" must have the methods debug, info, warn, error (e.g. consoleLogger()), got an object',
      'runtime: "telemetry" must have at least one of the methods onStart, startRun, startBatch, startPublish, onSettled, contextOf, startActivation, onWorkflow, onWorkflowCounts, onDrain, onClose (e.g. openTelemetry()), got 5',
      'runtime: "resolve" must have the methods resolve (or a function), got "x"',
      '"plugins" takes plugin objects, item 0 is null',
      'plugin "p": unknown option "onSettld", did you mean "onSettled"?',
    ]);
  });

  it('plugins: duplicate, missing and circular names', async () => {
    const plugins: Plugin[] = [
      { name: 'a', after: ['b'] },
      { name: 'b', after: ['a'] },
      { name: 'c', after: ['nobody'] },
      { name: 'c' },
    ];
    const problems = await problemsOf({ handlers: [handler('h')], plugins });
    expect(problems).toEqual([
      'two plugins are named "c"; names must be unique',
      'plugins wait for each other: a after b after a',
      'plugin "c" must stand after "nobody", which is not there',
    ]);
  });
});

describe('start', () => {
  it('is all or nothing: a subscription that is taken names its handler, and what was open is closed', async () => {
    await world.start({
      handlers: [handler('owner', { source: topic('taken'), subscription: 's', type: 'exclusive' })],
    });
    const starting = world.start({
      handlers: [handler('first'), handler('second', { source: topic('taken'), subscription: 's', type: 'exclusive' })],
    });
    await expect(starting).rejects.toMatchObject({
      code: 'START_FAILED',
      message: expect.stringMatching(/^handler "second" cannot start: subscription "s"/),
    });
    expect(world.broker.stats('orders').subscriptions.get('first')?.consumers).toEqual([]);
  });

  it('fails with a plugin whose onStart throws', async () => {
    const starting = world.start({
      handlers: [handler('first')],
      plugins: [{ name: 'p', onStart: () => Promise.reject(new Error('no licence')) }],
    });
    await expect(starting).rejects.toMatchObject({ code: 'START_FAILED', message: 'plugin "p": no licence' });
    expect(world.broker.stats('orders').subscriptions.get('first')?.consumers).toEqual([]);
  });

  it('names the class that cannot be made', async () => {
    @Handler({ subscription: 's' })
    class Broken {
      constructor() {
        throw new Error('no database');
      }
      @Subscribe(orders)
      handle() {
        return success();
      }
    }
    await expect(world.start({ handlers: [Broken] })).rejects.toMatchObject({
      code: 'START_FAILED',
      message: 'class Broken could not be resolved: no database',
    });
  });

  it('maps topic names by environment, then puts short ones into the namespace', async () => {
    const runtime = await world.start({
      handlers: [
        handler('h', { source: topic('orders'), publishes: [topic('receipts'), topic('persistent://a/b/full')] }),
      ],
      namespace: 'acme/prod',
      topics: (name) => (name === 'orders' ? 'orders-eu' : name),
    });
    expect(runtime.topology).toEqual([
      {
        handler: 'h',
        subscription: 'h',
        type: 'shared',
        from: ['persistent://acme/prod/orders-eu'],
        to: ['persistent://acme/prod/receipts', 'persistent://a/b/full'],
        retryLetters: [],
        deadLetters: ['persistent://acme/prod/orders-eu-h-DLQ'],
      },
    ]);
  });

  it('begins at the earliest message by default: what was sent before the first start is handled', async () => {
    await world.publish('orders', { id: 'before' });
    const seen: string[] = [];
    await world.start({
      handlers: [handler('h', { handle: (d: { payload: { id: string } }) => (seen.push(d.payload.id), success()) })],
    });
    await world.clock.advanceBy(0);
    expect(seen).toEqual(['before']);
  });
});

describe('illegal calls', () => {
  it('name the current state', async () => {
    const runtime = await world.start({ handlers: [handler('h')] });
    await world.drain(runtime);
    await expect(runtime.publisher(orders).publish({ id: 'x' })).rejects.toThrow(
      'runtime is closed; publish() needs running or draining',
    );
  });

  it('an unknown subscription is an error that names it', async () => {
    const runtime = await world.start({ handlers: [handler('h')] });
    expect(() => runtime.subscription('nobody', 'orders')).toThrow(PulseworkError);
  });
});
