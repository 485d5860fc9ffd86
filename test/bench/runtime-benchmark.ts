// What the runtime costs per message beside the bare loop, on the same broker with the same backlog: with plain
// handlers and with decorated ones, one message in flight and many.
import { Handler, Subscribe } from '../../decorators/index.js';
import { Runtime, defineHandler, success } from '../../src/index.js';
import type { Delivery, Logger, Outcome, PayloadOf, RuntimeOptions } from '../../src/index.js';
import { runBareLoop } from './bare-loop.js';
import type { Benchmark, Measurement, Variant } from './variant.js';
import { HandlerWork, MESSAGES, SUBSCRIPTION, backlogOf, bareSubscription, orders } from './workload.js';

const IN_FLIGHT = [1, 64];

/** Logging off: no line is written, and nothing is formatted for one. */
export const silentLogger: Logger = {
  isEnabled: () => false,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

export const runtimeBenchmark: Benchmark = {
  name: 'runtime',
  processes: 2,
  rounds: 5,
  variants: IN_FLIGHT.flatMap((inFlight) => variantsAt(inFlight)),
};

function variantsAt(inFlight: number): Variant[] {
  const bare = `bare loop, ${inFlight} in flight`;
  const warmUpRounds = 3;
  const defined = definedHandlers(inFlight);
  const decorated = decoratedHandlers(inFlight);
  return [
    { name: bare, warmUpRounds, measure: () => measureBareLoop(inFlight) },
    {
      name: `defineHandler, ${inFlight} in flight`,
      warmUpRounds,
      baseline: bare,
      measure: () => measureRuntime(inFlight, defined),
    },
    {
      name: `decorators, ${inFlight} in flight`,
      warmUpRounds,
      baseline: bare,
      measure: () => measureRuntime(inFlight, decorated),
    },
  ];
}

async function measureBareLoop(inFlight: number): Promise<Measurement> {
  const transport = await backlogOf(MESSAGES);
  const work = new HandlerWork(inFlight);
  const { codec, schema } = orders;
  if (schema === undefined) throw new Error('the workload has a schema');
  const handle = async (order: PayloadOf<typeof orders>): Promise<void> => {
    await work.run(order);
  };
  const subscription = await transport.subscribe(bareSubscription(inFlight));
  const loop = runBareLoop(subscription, inFlight, async (message) => {
    const value = message.payload === null ? null : codec.decode(message.payload);
    const result = schema['~standard'].validate(value);
    const checked = result instanceof Promise ? await result : result;
    if (checked.issues !== undefined) throw new Error('the payload does not match its schema');
    await handle(checked.value);
    await subscription.acknowledge([message.id]);
  });
  const measurement = await work.measured(transport);
  await transport.close();
  await loop;
  return measurement;
}

/** The handlers of one round. */
type HandlersOf = (work: HandlerWork) => Pick<RuntimeOptions, 'handlers' | 'resolve'>;

async function measureRuntime(inFlight: number, handlersOf: HandlersOf): Promise<Measurement> {
  const transport = await backlogOf(MESSAGES);
  const work = new HandlerWork(inFlight);
  const runtime = await Runtime.start({ transport, ...handlersOf(work), logger: silentLogger });
  const measurement = await work.measured(transport);
  await runtime.drain();
  return measurement;
}

function definedHandlers(inFlight: number): HandlersOf {
  return (work) => {
    const handler = defineHandler({
      name: 'charge',
      source: orders,
      subscription: SUBSCRIPTION,
      concurrency: inFlight,
      handle: async ({ payload }): Promise<Outcome> => {
        await work.run(payload);
        return success();
      },
    });
    return { handlers: [handler] };
  };
}

/** The class is made once, as in a program: a new one in each round would be compiled again. */
function decoratedHandlers(inFlight: number): HandlersOf {
  @Handler({ subscription: SUBSCRIPTION })
  class Billing {
    readonly #work: HandlerWork;

    constructor(work: HandlerWork) {
      this.#work = work;
    }

    @Subscribe(orders, { concurrency: inFlight })
    async charge({ payload }: Delivery<PayloadOf<typeof orders>>): Promise<Outcome> {
      await this.#work.run(payload);
      return success();
    }
  }
  return (work) => ({ handlers: [Billing], resolve: () => new Billing(work) });
}
