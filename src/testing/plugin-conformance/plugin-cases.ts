// What a plugin must stand, as data: each case starts a runtime with it and makes something happen. What the plugin does
// wrong on the way is seen by the world; a case says only what it alone can see.
import type { Delivery } from '../../core/delivery.js';
import type { Outcome } from '../../core/outcome.js';
import { defer, poison, retry, skip, success } from '../../core/outcome.js';
import type { PluginWorld } from './plugin-world.js';
import { outbox } from './plugin-world.js';

export interface PluginCase {
  /** What happens, as the beginning of a sentence; unique. */
  readonly title: string;
  /** Rejects, or tells the world, when the plugin does not stand it. */
  readonly run: (world: PluginWorld) => Promise<void>;
}

type Behaviour = (delivery: Delivery<string>, world: PluginWorld) => Outcome | Promise<Outcome>;
const isFirst = ({ attempt }: Delivery): boolean => attempt === 1;

const OUTCOMES: Readonly<Record<string, Behaviour>> = {
  succeeds: () => success(),
  'succeeds later': (_, world) => world.pass(5).then(() => success()),
  skips: () => skip('not mine'),
  'fails once': (delivery) => (isFirst(delivery) ? retry('busy') : success()),
  'gives up': () => poison('broken'),
  'gives up in the end': () => retry('always busy'),
  'is too early': ({ publishTimeMs }, world) => (world.clock.now() > publishTimeMs + 50 ? success() : defer(100)),
};

const ERRORS: Readonly<Record<string, Behaviour>> = {
  throws: (delivery) => {
    if (isFirst(delivery)) throw new Error('thrown by the handler');
    return success();
  },
  rejects: (delivery, world) =>
    isFirst(delivery) ? world.pass(5).then(() => Promise.reject(new Error('rejected by the handler'))) : success(),
};

export const pluginCases: readonly PluginCase[] = [
  { title: 'a handler gives outcomes of every kind', run: (world) => behave(world, OUTCOMES) },
  { title: 'a handler throws and rejects', run: (world) => behave(world, ERRORS) },
  {
    title: 'a payload cannot be read',
    async run(world) {
      await world.start();
      await world.publishBytes(Uint8Array.of(0xff));
      await world.allSettled(1);
    },
  },
  {
    title: 'messages are published',
    async run(world) {
      const runtime = await world.start({ handle: ({ payload }) => success(outbox.message(payload)) });
      await world.publish('a', 'b');
      await world.allSettled(2);
      const publishing = runtime.publisher(outbox).publish('c');
      await world.until(world.options.replaces === true ? publishing.catch(() => undefined) : publishing, 'a publish');
    },
  },
  {
    title: 'a publish fails once',
    async run(world) {
      await world.start({ handle: ({ payload }) => success(outbox.message(payload)) });
      world.publishFailure = new Error('the broker is away');
      await world.publish('a');
      await world.eventually(() => world.reports.length > 0 || world.publishFailure === undefined, 'a failed run');
      world.publishFailure = undefined;
      await world.allSettled(1);
    },
  },
  {
    title: 'four runs go on at a time',
    async run(world) {
      let [inside, most] = [0, 0];
      const handle = async (): Promise<Outcome> => {
        most = Math.max(most, (inside += 1));
        for (let waited = 0; waited < 20 && most < 4; waited += 1) await world.pass(1_000);
        inside -= 1;
        return success();
      };
      await world.start({ handle, concurrency: 4 });
      await world.publish('a', 'b', 'c', 'd');
      await world.allSettled(4);
      if (most < 4 && world.options.holdsBack !== true && world.options.replaces !== true)
        world.problem(`it lets ${most} of 4 runs go on at a time`);
    },
  },
  {
    title: 'a batch handler gives an outcome for each delivery',
    async run(world) {
      const outcomeFor = (delivery: Delivery<string>): Outcome =>
        delivery.payload === 'bad'
          ? poison('broken')
          : delivery.payload === 'busy' && isFirst(delivery)
            ? retry()
            : success();
      await world.start({ handleBatch: (deliveries) => deliveries.map(outcomeFor) });
      await world.publish('good', 'busy', 'bad');
      await world.allSettled(3);
    },
  },
  {
    title: 'a batch handler throws',
    async run(world) {
      let throwing = true;
      const handleBatch = (): Outcome => {
        if (!throwing) return success();
        throwing = false;
        throw new Error('thrown by the batch handler');
      };
      await world.start({ handleBatch });
      await world.publish('a', 'b', 'c');
      await world.allSettled(3);
    },
  },
  {
    title: 'a drain waits for a run',
    async run(world) {
      let begun = false;
      const handle = (): Promise<Outcome> => ((begun = true), world.pass(5_000).then(() => success()));
      const runtime = await world.start({ handle });
      await world.publish('a');
      await world.eventually(() => begun || world.options.replaces === true, 'the start of a run');
      const report = await world.until(runtime.drain(), 'the drain');
      if (!report.complete) world.problem('the drain does not end before its deadline');
    },
  },
  {
    title: 'a drain is past its deadline',
    async run(world) {
      let begun = false;
      const untilAborted = ({ signal }: Delivery<string>): Promise<Outcome> => {
        begun = true;
        return new Promise((_, reject) => {
          if (signal.aborted) reject(signal.reason as Error);
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
        });
      };
      const runtime = await world.start({ handle: untilAborted });
      await world.publish('a', 'b', 'c', 'd');
      await world.eventually(() => begun || world.options.replaces === true, 'the start of a run');
      const report = await world.until(runtime.drain({ deadlineMs: 1_000 }), 'the drain');
      if (report.stillRunning.length > 0)
        world.problem("a run does not end although its delivery's signal has aborted");
    },
  },
  {
    title: 'the start fails at a later plugin',
    async run(world) {
      const failing = { name: 'fails-to-start', onStart: () => Promise.reject(new Error('no licence')) };
      await world.start({}, [failing]).catch(() => undefined);
    },
  },
  {
    title: 'a runtime closes at once',
    async run(world) {
      const runtime = await world.start();
      await world.until(runtime.close(), 'closing');
    },
  },
];

/** One message for each behaviour. */
async function behave(world: PluginWorld, behaviours: Readonly<Record<string, Behaviour>>): Promise<void> {
  await world.start({ handle: (delivery) => behaviours[delivery.payload]?.(delivery, world) ?? success() });
  await world.publish(...Object.keys(behaviours));
  await world.allSettled(Object.keys(behaviours).length);
}
