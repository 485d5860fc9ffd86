// The store of a run, watched: how many workflows have begun and not ended, and whether a write was taken under an epoch that
// was not the newest. And stores that do wrong on purpose.
import { hasEnded } from '../../../src/core/workflow-journal.js';
import type {
  AcquiredWorkflow,
  AcquireRequest,
  NewWorkflow,
  TakenOutgoing,
  WorkflowKey,
  WorkflowStore,
  WorkflowWrite,
  WriteAnswer,
} from '../../../src/ports/workflow-store.js';
import { minutes } from '../../../src/index.js';
import type { Mistake } from './program.js';

type Methods = Partial<{ [M in keyof WorkflowStore]: WorkflowStore[M] }>;

/** `store` with some methods replaced. */
export function storeWith(store: WorkflowStore, methods: Methods): WorkflowStore {
  return new Proxy(store, {
    get(target, name) {
      const own = (methods as Readonly<Record<PropertyKey, unknown>>)[name];
      const value: unknown = own ?? Reflect.get(target, name);
      return typeof value === 'function' && own === undefined ? (value as () => unknown).bind(target) : value;
    },
  });
}

export class StoreWatch {
  readonly violations: string[] = [];
  /** Begun and not ended. */
  open = 0;
  /** One is blocked, though no code was changed: there is nothing to wait for. */
  hasBlocked = false;
  readonly #epochs = new Map<string, number>();
  readonly #ended = new Set<string>();
  /** Ids of messages that are to be sent, and of all that ever were: a repeat of a write adds none. */
  readonly #unsent = new Set<string>();
  readonly #written = new Set<string>();

  get unsent(): number {
    return this.#unsent.size;
  }

  watching(store: WorkflowStore): WorkflowStore {
    return storeWith(store, {
      start: async (key: WorkflowKey, workflow: NewWorkflow, nowMs: number) => {
        const isNew = await store.start(key, workflow, nowMs);
        if (isNew) this.open += 1;
        return isNew;
      },
      acquire: async (key: WorkflowKey, lease: AcquireRequest) => {
        const acquired = await store.acquire(key, lease);
        if (acquired !== undefined) this.#epochs.set(textOf(key), acquired.epoch);
        return acquired;
      },
      write: (key: WorkflowKey, write: WorkflowWrite) => this.#write(store, key, write),
      sent: async (messageIds: readonly string[]) => {
        await store.sent(messageIds);
        for (const id of messageIds) this.#unsent.delete(id);
      },
    });
  }

  async #write(store: WorkflowStore, key: WorkflowKey, write: WorkflowWrite): Promise<WriteAnswer> {
    const newest = this.#epochs.get(textOf(key)) ?? 0;
    const answer = await store.write(key, write);
    if (write.epoch < newest)
      this.violations.push(`a write to ${textOf(key)} was taken under epoch ${write.epoch}, the newest is ${newest}`);
    for (const { messageId } of write.outgoing) {
      if (!this.#written.has(messageId)) this.#unsent.add(messageId);
      this.#written.add(messageId);
    }
    const { status } = write.change;
    this.hasBlocked ||= status === 'blocked';
    const text = textOf(key);
    // A repeat of the write that ended it is answered too.
    if (status !== 'continued' && hasEnded(status) && !this.#ended.has(text)) this.open -= 1;
    if (status !== 'continued' && hasEnded(status)) this.#ended.add(text);
    return answer;
  }
}

/** A store that makes the mistake. */
export function mistaken(store: WorkflowStore, mistake: Mistake | undefined): WorkflowStore {
  if (mistake === 'accepts-any-epoch') return acceptingAny(store);
  if (mistake === 'wakes-nobody') return storeWith(store, { due: async () => [] });
  if (mistake === 'renames-messages')
    return storeWith(store, {
      takeOutgoing: async (lease: Parameters<WorkflowStore['takeOutgoing']>[0]) =>
        (await store.takeOutgoing(lease)).map(renamed),
    });
  if (mistake !== 'forgets-results') return store;
  let hasForgotten = false;
  return storeWith(store, {
    write: (key: WorkflowKey, write: WorkflowWrite) => {
      const entries = write.entries.filter(({ kind }) => hasForgotten || kind !== 'completed');
      hasForgotten ||= entries.length < write.entries.length;
      return store.write(key, { ...write, entries });
    },
  });
}

/** Leases are over before their time, and whoever writes does so under the newest. */
function acceptingAny(store: WorkflowStore): WorkflowStore {
  const newest = new Map<string, Pick<AcquiredWorkflow, 'epoch' | 'writeVersion'>>();
  return storeWith(store, {
    acquire: async (key: WorkflowKey, lease: AcquireRequest) => {
      const asked = { ...lease, nowMs: lease.nowMs + minutes(10), leaseMs: lease.leaseMs - minutes(10) };
      const acquired = await store.acquire(key, asked);
      if (acquired !== undefined) newest.set(textOf(key), acquired);
      return acquired;
    },
    write: async (key: WorkflowKey, write: WorkflowWrite) => {
      const { epoch, writeVersion: expectedVersion } = newest.get(textOf(key)) ?? { epoch: 0, writeVersion: 0 };
      const answer = await store.write(key, { ...write, epoch, expectedVersion });
      newest.set(textOf(key), { epoch, writeVersion: answer.writeVersion });
      return answer;
    },
  });
}

function renamed(row: TakenOutgoing): TakenOutgoing {
  const { properties } = row.message;
  const id = properties['pulsework-message-id'];
  return { ...row, message: { ...row.message, properties: { ...properties, 'pulsework-message-id': `${id}?` } } };
}

function textOf({ name, id }: WorkflowKey): string {
  return `${name} ${id}`;
}
