// What a plugin gets of a runtime, without a runtime: a clock that stands still, a log that is kept, health as told.
import { positionText } from '../../../src/core/message-id.js';
import type {
  Delivery,
  LogFields,
  Logger,
  Outcome,
  Plugin,
  RuntimeControl,
  SettlementReport,
  SubscriptionHealth,
} from '../../../src/index.js';
import { success } from '../../../src/core/outcome.js';
import { FakeClock } from '../../../src/testing/fake-clock.js';

export const ID = {
  ledgerId: 1,
  entryId: 2,
  partition: -1,
  batchIndex: -1,
  batchSize: 0,
  topic: 'persistent://public/default/orders',
};

export interface KeptLine {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

export class Control implements RuntimeControl {
  readonly clock = new FakeClock();
  readonly log: KeptLine[] = [];
  readonly logger: Logger = {
    debug: this.#at('debug'),
    info: this.#at('info'),
    warn: this.#at('warn'),
    error: this.#at('error'),
  };
  readonly transport = 'embedded';
  /** `drain` and `close`, in the order of their calls. */
  readonly asked: string[] = [];
  subscriptions: readonly SubscriptionHealth[] = [health()];
  answer: () => Promise<unknown> = () => Promise.resolve();

  health(): readonly SubscriptionHealth[] {
    return this.subscriptions;
  }

  drain(): Promise<unknown> {
    this.asked.push('drain');
    return this.answer();
  }

  close(): Promise<unknown> {
    this.asked.push('close');
    return this.answer();
  }

  linesAt(level: string): readonly KeptLine[] {
    return this.log.filter((line) => line.level === level);
  }

  async start<P extends Plugin>(plugin: P): Promise<P> {
    await plugin.onStart?.(this);
    return plugin;
  }

  #at(level: string): Logger['info'] {
    return (message, fields = {}) => void this.log.push({ level, message, fields });
  }
}

export function health(fields: Partial<SubscriptionHealth> = {}): SubscriptionHealth {
  const counts = { running: 0, held: 0, kept: 0, blocked: 0, waitingKeys: 0, backlog: 0 };
  const times = { oldestRunMs: undefined, lastDeliveryMs: undefined, oldestFailureMs: undefined };
  const where = { handler: 'billing', subscription: 's', topics: [ID.topic] };
  return {
    ...where,
    state: 'running',
    reason: undefined,
    fullKey: undefined,
    throttled: 0,
    deliveryPause: undefined,
    pausedBy: [],
    dependenciesDown: [],
    ...counts,
    ...times,
    ...fields,
  };
}

export function delivery(fields: Partial<Delivery> = {}): Delivery {
  return {
    payload: 1,
    id: ID,
    topic: ID.topic,
    position: positionText(ID),
    originId: '1:2:-1',
    subscription: 's',
    handler: 'billing',
    key: undefined,
    orderingKey: undefined,
    properties: {},
    publishTimeMs: 0,
    eventTimeMs: undefined,
    attempt: 1,
    maxDeliveries: 10,
    redeliveryCount: 0,
    correlationId: undefined,
    signal: new AbortController().signal,
    ...fields,
  };
}

export function report(fields: Partial<SettlementReport> = {}): SettlementReport {
  return {
    handler: 'billing',
    subscription: 's',
    topic: ID.topic,
    id: ID,
    key: undefined,
    properties: {},
    attempt: 1,
    outcome: 'success',
    settlement: 'acknowledge',
    durationMs: 3,
    ...fields,
  };
}

/** One run of a handler inside the plugin. */
export async function run(
  plugin: Plugin,
  next: () => Outcome | Promise<Outcome> = () => success(),
  fields: Partial<Delivery> = {},
): Promise<Outcome> {
  if (plugin.aroundHandler === undefined) throw new Error('the plugin has no aroundHandler');
  return plugin.aroundHandler(delivery(fields), next);
}

/** The problems of options that are refused. */
export function problemsOf(make: () => unknown): readonly string[] {
  try {
    make();
  } catch (error) {
    return (error as { readonly problems: readonly string[] }).problems;
  }
  return [];
}
