// An outbox in memory whose store calls go wrong with those to the broker: what CrashWorld cuts.
import type { OutboxLead, OutboxStore } from '../../src/ports/outbox-store.js';
import { SyncOutbox } from '../../src/runtime/outbox/outbox.js';
import type { MemoryOutboxTransaction } from '../../src/stores/memory/memory-outbox-store.js';
import { MemoryOutboxStore } from '../../src/stores/memory/memory-outbox-store.js';
import type { Clock } from '../../src/index.js';

type Cut = <S extends object>(store: S, methods: readonly (keyof S)[]) => S;

/** Longer than the lead of a process holds that nobody hears of any more. */
const LEAD_ENDS_MS = 15_000;

/** The outbox of one process on a store that outlives it. */
export function outboxWithFaults(
  store: MemoryOutboxStore,
  clock: Clock,
  cut: Cut,
): SyncOutbox<MemoryOutboxTransaction> {
  const lead = async (): Promise<OutboxLead | undefined> => {
    const given = await store.lead();
    if (given === undefined) return undefined;
    return cut(given, ['claimed', 'claim', 'delete', 'refuse', 'summary', 'end']);
  };
  const calls = cut({ lead, open: () => store.open() }, ['lead', 'open']);
  const faulty: OutboxStore<MemoryOutboxTransaction> = {
    name: store.name,
    open: () => calls.open(),
    append: (tx, records) => store.append(tx, records),
    lead: () => {
      const leading = calls.lead();
      // One that was given and never arrived ends by itself.
      const unheard = clock.setTimer(LEAD_ENDS_MS, () => store.leaderDies());
      leading.then(
        () => unheard.cancel(),
        () => undefined,
      );
      return leading;
    },
    refused: (limit) => store.refused(limit),
    release: (id) => store.release(id),
    skip: (id) => store.skip(id),
  };
  return new SyncOutbox(faulty, clock);
}
