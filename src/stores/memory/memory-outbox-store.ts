// An OutboxStore in memory, with transactions of its own: for tests, and the plain model of what the others do in SQL.
import { MAX_WAITING_COUNTED, nextOutboxNumber } from '../../core/outbox-record.js';
import type { OutboxRecord } from '../../core/outbox-record.js';
import { PulseworkError } from '../../core/errors.js';
import type { ClaimedRow, OutboxLead, OutboxStore, OutboxSummary, RefusedRow } from '../../ports/outbox-store.js';
import type { Clock } from '../../ports/clock.js';

/** Those of this process, so that no two have the same id. */
let stores = 0;

interface Row extends OutboxRecord {
  readonly id: number;
  readonly appendedMs: number;
  number?: number | undefined;
  refusal?: { readonly reason: string; readonly nowMs: number } | undefined;
}

/** Of `MemoryOutboxStore.begin()`: what is appended in it is there once it is committed. */
export class MemoryOutboxTransaction {
  readonly #rows: Row[] = [];
  readonly #effects: (() => void)[] = [];
  readonly #commit: (rows: readonly Row[]) => void;
  #ended = false;

  constructor(commit: (rows: readonly Row[]) => void) {
    this.#commit = commit;
  }

  /** @throws PulseworkError ILLEGAL_STATE once it was committed or rolled back. */
  append(row: Row): void {
    if (this.#ended) throw new PulseworkError('ILLEGAL_STATE', 'the transaction has ended; begin() another one');
    this.#rows.push(row);
  }

  /** Calls `effect` once it is committed: the writes of a test's own database. */
  onCommit(effect: () => void): void {
    this.#effects.push(effect);
  }

  commit(): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const effect of this.#effects) effect();
    this.#commit(this.#rows);
  }

  rollback(): void {
    this.#ended = true;
  }
}

export class MemoryOutboxStore implements OutboxStore<MemoryOutboxTransaction> {
  readonly name = 'memory';
  readonly outboxId: string;
  readonly #clock: Clock;
  #rows: readonly Row[] = [];
  #lastId = 0;
  #lastNumber = 0;
  #leader: MemoryLead | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    stores += 1;
    this.outboxId = `memory-${stores}`;
  }

  async open(): Promise<void> {}

  begin(): MemoryOutboxTransaction {
    return new MemoryOutboxTransaction((rows) => {
      this.#rows = [...this.#rows, ...rows].sort((a, b) => a.id - b.id);
      this.#leader?.tell();
    });
  }

  /** Ids are taken at once, as sequences of databases do: whoever commits later may have the lower ones. */
  append(tx: MemoryOutboxTransaction, records: readonly OutboxRecord[]): void {
    for (const record of records) {
      this.#lastId += 1;
      tx.append({ ...record, id: this.#lastId, appendedMs: this.#clock.now() });
    }
  }

  async lead(): Promise<OutboxLead | undefined> {
    if (this.#leader !== undefined) return undefined;
    this.#leader = new MemoryLead(this, () => (this.#leader = undefined));
    return this.#leader;
  }

  /** For tests: the process that leads has died. */
  leaderDies(): void {
    this.#leader?.lose();
    this.#leader = undefined;
  }

  async refused(limit: number): Promise<readonly RefusedRow[]> {
    return this.#rows
      .flatMap(({ refusal, ...row }) =>
        refusal === undefined ? [] : [{ ...row, reason: refusal.reason, refusedMs: refusal.nowMs }],
      )
      .slice(0, limit);
  }

  async release(id: number): Promise<boolean> {
    const row = this.#refusedRow(id);
    if (row !== undefined) row.refusal = undefined;
    this.#leader?.tell();
    return row !== undefined;
  }

  async skip(id: number): Promise<boolean> {
    const row = this.#refusedRow(id);
    this.#rows = this.#rows.filter((each) => each !== row);
    this.#leader?.tell();
    return row !== undefined;
  }

  /** For the leader. */
  claimed(): readonly ClaimedRow[] {
    return copiesOf(this.#rows.filter(isClaimed).sort((a, b) => a.number - b.number));
  }

  /** For the leader. */
  claim({ limit, exceptTopics, nowMs }: Parameters<OutboxLead['claim']>[0]): readonly ClaimedRow[] {
    const refused = this.#rows.filter(({ refusal }) => refusal !== undefined);
    const isFree = (row: Row): boolean =>
      row.number === undefined &&
      !exceptTopics.includes(row.topic) &&
      !refused.some((other) => other === row || isSameKey(other, row));
    const rows = this.#rows.filter(isFree).slice(0, limit);
    for (const row of rows) row.number = this.#lastNumber = nextOutboxNumber(this.#lastNumber, nowMs);
    return copiesOf(rows.filter(isClaimed));
  }

  /** For the leader. */
  delete(ids: readonly number[]): void {
    this.#rows = this.#rows.filter(({ id }) => !ids.includes(id));
  }

  /** For the leader. */
  refuse(id: number, refusal: { readonly reason: string; readonly nowMs: number }): void {
    const row = this.#rows.find((each) => each.id === id);
    if (row === undefined) return;
    const { number = Infinity } = row;
    for (const other of this.#rows)
      if (other.number !== undefined && other.number > number && isSameKey(row, other)) other.number = undefined;
    row.number = undefined;
    row.refusal = refusal;
  }

  /** For the leader. */
  summary(): OutboxSummary {
    const going = this.#rows.filter(({ refusal }) => refusal === undefined);
    return {
      waiting: Math.min(going.length, MAX_WAITING_COUNTED),
      oldestMs: going[0]?.appendedMs,
      refused: this.#rows.length - going.length,
    };
  }

  #refusedRow(id: number): Row | undefined {
    return this.#rows.find((row) => row.id === id && row.refusal !== undefined);
  }
}

class MemoryLead implements OutboxLead {
  readonly outboxId: string;
  readonly #store: MemoryOutboxStore;
  readonly #release: () => void;
  #report: () => void = () => undefined;
  #state: 'leading' | 'lost' | 'ended' = 'leading';

  constructor(store: MemoryOutboxStore, release: () => void) {
    this.outboxId = store.outboxId;
    this.#store = store;
    this.#release = release;
  }

  tell(): void {
    this.#report();
  }

  lose(): void {
    this.#state = 'lost';
  }

  async claimed(): Promise<readonly ClaimedRow[]> {
    return this.#leading().claimed();
  }

  async claim(options: Parameters<OutboxLead['claim']>[0]): Promise<readonly ClaimedRow[]> {
    return this.#leading().claim(options);
  }

  async delete(ids: readonly number[]): Promise<void> {
    this.#leading().delete(ids);
  }

  async refuse(id: number, refusal: { readonly reason: string; readonly nowMs: number }): Promise<void> {
    this.#leading().refuse(id, refusal);
  }

  async summary(): Promise<OutboxSummary> {
    return this.#leading().summary();
  }

  onNews(report: () => void): void {
    this.#report = report;
  }

  async end(): Promise<void> {
    if (this.#state === 'leading') this.#release();
    this.#state = 'ended';
  }

  #leading(): MemoryOutboxStore {
    if (this.#state === 'leading') return this.#store;
    throw new PulseworkError('OUTBOX_LEAD_LOST', 'outbox "memory": another process relays it now');
  }
}

function isClaimed(row: Row): row is Row & ClaimedRow {
  return row.number !== undefined;
}

/** As they are now: what becomes of a row later is not seen. */
function copiesOf(rows: readonly (Row & ClaimedRow)[]): readonly ClaimedRow[] {
  return rows.map((row) => ({ ...row }));
}

function isSameKey(a: Row, b: Row): boolean {
  return a.orderedBy !== undefined && a.orderedBy === b.orderedBy && a.topic === b.topic;
}
