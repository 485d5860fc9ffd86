// The runtime in the hands of a case: one handler, on subscription `billing`, whose runs are written down.
import { fixedBackoff } from '../../core/backoff.js';
import type { Delivery } from '../../core/delivery.js';
import { defineHandler } from '../../core/handler-definition.js';
import type { HandlerOptions } from '../../core/handler-definition.js';
import type { EncodedMessage } from '../../core/message.js';
import type { Outcome } from '../../core/outcome.js';
import { success } from '../../core/outcome.js';
import type { Transport } from '../../ports/transport.js';
import { Runtime } from '../../runtime/runtime.js';
import type { ConformanceWorld } from './conformance-world.js';
import { expectEqual } from './expectations.js';

export const SUBSCRIPTION = 'billing';

const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

export interface WatchedHandlerOptions extends HandlerOptions {
  /** @default a client of its own */
  readonly transport?: Transport | undefined;
}

/** What a case decides of a run. */
export type Handle = (delivery: Delivery) => Outcome | Promise<Outcome>;

/** A runtime with one handler on `topic` that fails after 100 ms' waiting, three times at most, unless told otherwise. */
export async function startHandler(
  world: ConformanceWorld,
  topic: string,
  handle: Handle,
  { transport, ...options }: WatchedHandlerOptions = {},
): Promise<Runtime> {
  const redelivery = { maxDeliveries: 3, backoff: fixedBackoff(100) };
  const starting = Runtime.start({
    transport: transport ?? (await world.newTransport()),
    clock: world.clock,
    logger: SILENT,
    random: () => 0.5,
    handlers: [
      defineHandler({ name: 'billing', source: topic, subscription: SUBSCRIPTION, redelivery, ...options, handle }),
    ],
  });
  return world.until(starting, 'the start of the runtime');
}

export async function drain(world: ConformanceWorld, runtime: Runtime): Promise<void> {
  await world.until(runtime.drain({ deadlineMs: 5_000 }), 'the end of the runtime');
}

/** Checks that the subscription holds nothing any more. */
export async function expectSettled(
  world: ConformanceWorld,
  topic: string,
  options: Pick<HandlerOptions, 'type'> = {},
): Promise<void> {
  const type = options.type ?? 'shared';
  const subscription = await world.subscribe(topic, { subscription: SUBSCRIPTION, type });
  await subscription.expectQuiet();
}

/** A message whose payload is `value` as JSON, which is what handlers read by default. */
export function json(value: unknown, more: Partial<EncodedMessage> = {}): Partial<EncodedMessage> {
  return { payload: new TextEncoder().encode(JSON.stringify(value)), ...more };
}

/** One run of a handler. */
export interface Run {
  /** Payload and attempt: `a2` is the second attempt of "a". */
  readonly name: string;
  readonly atMs: number;
  readonly delivery: Delivery;
}

export class WatchedHandler {
  readonly runs: Run[] = [];
  readonly #world: ConformanceWorld;
  readonly #outcomeOf: Handle;
  #runtime: Runtime | undefined;

  private constructor(world: ConformanceWorld, outcomeOf: Handle) {
    this.#world = world;
    this.#outcomeOf = outcomeOf;
  }

  /** Payloads must be texts or numbers. @param outcomeOf by default every run succeeds. */
  static async start(
    world: ConformanceWorld,
    topic: string,
    options: WatchedHandlerOptions = {},
    outcomeOf: Handle = () => success(),
  ): Promise<WatchedHandler> {
    const watched = new WatchedHandler(world, outcomeOf);
    watched.#runtime = await startHandler(world, topic, (delivery) => watched.#run(delivery), options);
    return watched;
  }

  /** In the order of the runs. */
  get names(): readonly string[] {
    return this.runs.map(({ name }) => name);
  }

  /** Deliveries that wait for a due time. */
  get waiting(): number {
    const [health] = this.#runtime?.health() ?? [];
    return (health?.held ?? 0) + (health?.kept ?? 0);
  }

  /** When the run of this name began. */
  atMs(name: string): number {
    return this.runs.find((run) => run.name === name)?.atMs ?? Number.NaN;
  }

  /** Waits until these have run, in any order and among others. */
  async until(...names: readonly string[]): Promise<void> {
    const came = (): boolean => names.every((name) => this.names.includes(name));
    await this.#world.eventually(came, `the runs ${names.join(', ')}`);
  }

  /** Checks which runs there were, in any order. */
  expectRuns(...names: readonly string[]): void {
    expectEqual([...this.names].sort(), [...names].sort(), 'the runs');
  }

  async drain(): Promise<void> {
    if (this.#runtime !== undefined) await drain(this.#world, this.#runtime);
  }

  #run(delivery: Delivery): Outcome | Promise<Outcome> {
    const name = `${String(delivery.payload)}${delivery.attempt}`;
    this.runs.push({ name, atMs: this.#world.clock.now(), delivery });
    return this.#outcomeOf(delivery);
  }
}

/** A promise that a case resolves when it is time. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
}
