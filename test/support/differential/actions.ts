// What a step of a differential program comes to: the messages that it means by name, found out once, on the embedded broker,
// so that the other broker is asked for exactly the same.
import type { Step } from './program.js';
import type { SubscriptionRun } from './subscription-run.js';

export interface Action {
  readonly step: Step;
  /** Texts of the messages that are published, settled, or sought. */
  readonly texts: readonly string[];
  /** The consumer that acts; -1 where those who hold the messages do, or none does. */
  readonly slot: number;
}

/** @param published how many messages were published before. @returns undefined where nothing can be meant. */
export function actionFor(step: Step, runs: readonly SubscriptionRun[], published: number): Action | undefined {
  if (step.do === 'unload' || step.do === 'trim') return { step, texts: [], slot: -1 };
  if (step.do === 'publish' || step.do === 'batch') {
    const texts = step.messages.map((_, i) => `m${String(published + i + 1).padStart(2, '0')}`);
    return { step, texts, slot: -1 };
  }
  const run = runs[step.sub]!;
  const texts = meant(step, run);
  const slot = slotFor(step, run);
  return texts === undefined || slot === undefined ? undefined : { step, texts, slot };
}

type SubscriptionStep = Exclude<Step, { readonly do: 'publish' | 'batch' | 'unload' | 'trim' }>;

/** Undefined where the step needs a message and there is none. */
function meant(step: SubscriptionStep, { arrivals, plan }: SubscriptionRun): readonly string[] | undefined {
  const held = arrivals.heldTexts();
  switch (step.do) {
    case 'ack':
    case 'nack':
      return some(held, step.pick, step.count);
    case 'ack-up-to':
      return plan.type === 'exclusive' || plan.type === 'failover' ? some(held, step.pick, 1) : undefined;
    case 'ack-again':
      return some(
        arrivals.knownTexts().filter((text) => !held.includes(text)),
        step.pick,
        1,
      );
    case 'seek':
      return step.to === 'earliest' || step.to === 'latest' ? [] : some(arrivals.knownTexts(), step.pick, 1);
    case 'ack-all':
      return held;
    case 'open':
    case 'close':
    case 'consume':
    case 'finish':
      return [];
  }
}

function some(texts: readonly string[], pick: number, count: number): readonly string[] | undefined {
  if (texts.length === 0) return undefined;
  const from = pick % texts.length;
  return texts.slice(from, from + count);
}

/** Undefined where the step needs a consumer and there is none. */
function slotFor(step: SubscriptionStep, run: SubscriptionRun): number | undefined {
  if (step.do === 'open') return mayOpen(step.slot, run) ? step.slot : undefined;
  if (step.do === 'close' || step.do === 'consume') {
    const can = run.isOpen(step.slot) && (step.do === 'close' || run.plan.flow === 'narrow');
    return can ? step.slot : undefined;
  }
  if (step.do === 'ack') return run.isOpen(step.by) ? step.by : -1;
  if (step.do === 'seek' && run.isOpen(step.slot)) return step.slot;
  return step.do === 'seek' || step.do === 'ack-again' ? run.openSlots[0] : -1;
}

/** Of several narrow consumers of a Shared subscription any may have a permit left, and gets what comes next. */
function mayOpen(slot: number, { plan, openSlots }: SubscriptionRun): boolean {
  return !openSlots.includes(slot) && !(plan.type === 'shared' && plan.flow === 'narrow' && openSlots.length > 0);
}
