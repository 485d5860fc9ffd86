// What the tests of idempotent() share: a store, a clock, what was logged, and runs on behalf of several processes.
import type { Delivery, IdempotencyStore, LogFields, Outcome, OutgoingMessage } from 'pulsework';
import { idempotent, memoryIdempotencyStore } from 'pulsework';
import { FakeClock } from 'pulsework/testing';
import { expect } from 'vitest';
import { PreparedMessage } from '../../../src/core/recorded-outcome.js';
import type { IdempotencyContext } from '../../../src/runtime/idempotent.js';

export const LEASE_MS = 3_000;
export const TTL_MS = 60_000;

export interface Order {
  readonly id: string;
}

export class IdempotencyWorld {
  readonly clock = new FakeClock(0);
  store: IdempotencyStore = memoryIdempotencyStore();
  readonly logged: { readonly level: string; readonly message: string; readonly fields: LogFields | undefined }[] = [];
  aborts = new AbortController();

  context(process = 'host/1'): IdempotencyContext {
    const log = (level: string) => (message: string, fields?: LogFields) =>
      void this.logged.push({ level, message, fields });
    return {
      clock: this.clock,
      // Without time limits: their timers would hide those of the leases.
      calls: { run: (_what, call) => call() },
      logger: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
      processName: process,
      random: () => 0.5,
      provenanceOf: () => ({}),
      prepare: async (message, index) =>
        new PreparedMessage(`persistent://public/default/${message.topic.name}`, {
          payload: new TextEncoder().encode(JSON.stringify(message.payload)),
          properties: { 'pulsework-message-id': `1:2:-1/${process}/${index}` },
        }),
    };
  }

  deliveryOf(id: string, handler = 'Billing.charge'): Delivery<Order> {
    const { signal } = this.aborts;
    const fields = { payload: { id }, originId: '1:2:-1', subscription: 'billing', handler, signal };
    return fields as unknown as Delivery<Order>;
  }

  run(
    next: () => Outcome | Promise<Outcome>,
    { key = 'order-1', handler, process }: { key?: string; handler?: string; process?: string } = {},
  ): Promise<Outcome> {
    const { store } = this;
    const idempotency = idempotent<Order>({
      key: ({ payload }) => payload.id,
      store,
      ttlMs: TTL_MS,
      leaseMs: LEASE_MS,
    });
    return idempotency.around(this.deliveryOf(key, handler), next, this.context(process));
  }
}

/** The messages of an outcome as they will be published. */
export function messagesOf(outcome: Outcome): readonly unknown[] {
  const { messages } = outcome as { messages: readonly OutgoingMessage[] };
  return messages.map((each) => (each instanceof PreparedMessage ? each.message : expect.unreachable('not encoded')));
}

/** A handler that ends when told to. */
export function slowRun(): { readonly next: () => Promise<Outcome>; readonly end: (outcome: Outcome) => void } {
  let end: (outcome: Outcome) => void = () => undefined;
  const ended = new Promise<Outcome>((resolve) => (end = resolve));
  return { next: () => ended, end };
}

export function brokenStore(broken: keyof IdempotencyStore, how: () => Promise<never>): IdempotencyStore {
  const inner = memoryIdempotencyStore();
  return {
    name: 'broken',
    claim: (...args) => inner.claim(...args),
    renew: (...args) => inner.renew(...args),
    record: (...args) => inner.record(...args),
    release: (...args) => inner.release(...args),
    [broken]: how,
  };
}
