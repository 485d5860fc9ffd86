// A differential program on one broker, action by action. What is observed after each is a value that another broker's can be
// compared with.
import type { EncodedMessage } from 'pulsework';
import { TransportError } from 'pulsework';
import type { Action } from './actions.js';
import { actionFor } from './actions.js';
import type { SeenArrival } from './arrivals.js';
import type { DifferentialWorld, SubscriptionFigures } from './differential-world.js';
import { freedomOf } from './freedom.js';
import type { Program, PublishStep, Step, SubscriptionPlan } from './program.js';
import { SubscriptionRun } from './subscription-run.js';

/** So that no two entries have the same publish time. */
const BETWEEN_PUBLISHES_MS = 3;

export interface SubscriptionView {
  /** With the type that it has now. */
  readonly plan: SubscriptionPlan;
  /** What came, in order. */
  readonly arrivals: readonly SeenArrival[];
  /** What is held, in the order in which it came. */
  readonly held: readonly SeenArrival[];
  /** How many consumers there were before the action. */
  readonly consumersBefore: number;
  /** Failover only. */
  readonly activeSlots: readonly number[];
  readonly connections: readonly number[];
  readonly figures: SubscriptionFigures | undefined;
}

export interface Observation {
  /** `done`, or the code of the error that a call was refused with. */
  readonly outcome: string;
  readonly subscriptions: readonly SubscriptionView[];
}

export class ProgramRun {
  readonly #world: DifferentialWorld;
  readonly #subscriptions: readonly SubscriptionRun[];
  #published = 0;

  constructor(program: Program, world: DifferentialWorld, topic: string) {
    this.#world = world;
    this.#subscriptions = program.subscriptions.map((plan, sub) => new SubscriptionRun(world, topic, sub, plan));
  }

  actionFor(step: Step): Action | undefined {
    return actionFor(step, this.#subscriptions, this.#published);
  }

  /**
   * Does it and gives what is seen once everything has come of it.
   * @param expected what another broker gave, `matches` whether an observation is the same.
   */
  async perform(
    action: Action,
    expected?: { readonly seen: Observation; readonly matches: (seen: Observation) => boolean },
  ): Promise<Observation> {
    for (const run of this.#subscriptions) run.beginStep();
    const swept = this.#subscriptions.filter(
      ({ plan, consumersBefore }, sub) => freedomOf(plan, consumersBefore, sub, action) === 'swept',
    );
    const outcome = await this.#outcomeOf(action, expected?.seen);
    await this.#world.settle(async () => {
      const acknowledged = await this.#sweep(swept);
      if (expected === undefined) return acknowledged === 0;
      return expected.matches(await this.observe(outcome));
    });
    return this.observe(outcome);
  }

  async observe(outcome = 'done'): Promise<Observation> {
    const figures = await this.#world.figures();
    const subscriptions = this.#subscriptions.map((run): SubscriptionView => {
      const { name, plan, arrivals, consumersBefore, activeSlots, connections } = run;
      const came = { arrivals: arrivals.step(), held: arrivals.held() };
      return { ...came, plan, consumersBefore, activeSlots, connections, figures: figures.get(name) };
    });
    return { outcome, subscriptions };
  }

  async #outcomeOf(action: Action, expected: Observation | undefined): Promise<string> {
    try {
      await this.#do(action, expected);
      return 'done';
    } catch (error) {
      if (error instanceof TransportError) return error.code;
      throw error;
    }
  }

  async #do({ step, texts, slot }: Action, expected: Observation | undefined): Promise<void> {
    if (step.do === 'publish' || step.do === 'batch') return this.#publish(step, texts);
    if (step.do === 'unload') return this.#unload();
    if (step.do === 'trim') return this.#world.trim();
    const run = this.#subscriptions[step.sub]!;
    switch (step.do) {
      case 'open':
        return run.open(slot, step.type);
      case 'close':
        return run.close(slot);
      case 'finish':
        return run.finish();
      case 'consume':
        return run.consume(slot, step.count, cameTo(expected, step.sub));
      case 'seek':
        return run.seek(slot, step.to, texts[0]);
      case 'ack':
      case 'ack-again':
      case 'ack-all':
      case 'ack-up-to':
      case 'nack':
        return settle(run, step, texts, slot);
    }
  }

  async #publish(step: PublishStep, texts: readonly string[]): Promise<void> {
    const encoder = new TextEncoder();
    const messages = step.messages.map(({ key, orderingKey }, i): EncodedMessage => {
      const payload = encoder.encode(texts[i]);
      return {
        payload,
        key,
        orderingKey: orderingKey === undefined ? undefined : encoder.encode(orderingKey),
        properties: {},
      };
    });
    this.#published += messages.length;
    if (step.do === 'publish') {
      for (const message of messages) {
        await this.#world.publish(message);
        await this.#world.pause(BETWEEN_PUBLISHES_MS);
      }
      return;
    }
    const ids = await this.#world.publishBatch(messages);
    await this.#world.pause(BETWEEN_PUBLISHES_MS);
    const entries = new Set(ids.map(({ ledgerId, entryId }) => `${ledgerId}:${entryId}`));
    if (entries.size !== 1) throw new Error(`a batch became ${entries.size} entries`);
  }

  async #unload(): Promise<void> {
    for (const { arrivals } of this.#subscriptions) arrivals.releaseAll();
    await this.#world.unload();
  }

  /** Acknowledges what came, so that what waits behind it comes too. */
  async #sweep(swept: readonly SubscriptionRun[]): Promise<number> {
    let acknowledged = 0;
    for (const run of swept) {
      const texts = run.arrivals.heldTexts();
      acknowledged += texts.length;
      if (texts.length > 0) await run.acknowledge(texts, -1);
    }
    return acknowledged;
  }
}

async function settle(run: SubscriptionRun, { do: how }: Step, texts: readonly string[], slot: number): Promise<void> {
  if (how === 'nack') return run.redeliver(texts);
  if (how === 'ack-up-to') return run.acknowledgeUpTo(texts[0]!);
  return run.acknowledge(texts, slot);
}

function cameTo(expected: Observation | undefined, sub: number): number {
  return expected?.subscriptions[sub]?.arrivals.length ?? 0;
}
