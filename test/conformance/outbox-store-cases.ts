// What every OutboxStore must do, as data: the contract of ports/outbox-store.ts.
import { expect } from 'vitest';
import { outboxRecord } from '../../src/core/outbox-record.js';
import type { ClaimedRow, OutboxLead, OutboxStore } from '../../src/ports/outbox-store.js';

export interface OutboxPlace {
  /** Opened. */
  readonly store: OutboxStore<unknown>;
  /** A transaction of the user's. */
  begin(): Promise<OutboxTransaction>;
  /** The process that leads is gone, without a word. */
  leaderDies(lead: OutboxLead): Promise<void>;
}

export interface OutboxTransaction {
  readonly tx: unknown;
  readonly commit: () => Promise<void>;
  readonly rollback: () => Promise<void>;
}

export interface OutboxStoreCase {
  readonly name: string;
  /** Two transactions are open side by side. */
  readonly needsConcurrentTransactions?: true;
  readonly run: (place: OutboxPlace) => Promise<void>;
}

const NOW_MS = Date.UTC(2026, 0, 1);

function record(topic: string, key: string | undefined, text = '') {
  return outboxRecord(topic, { payload: new TextEncoder().encode(text), key, properties: { text } });
}

async function add(place: OutboxPlace, ...rows: readonly (readonly [topic: string, key?: string])[]): Promise<void> {
  const { tx, commit } = await place.begin();
  await place.store.append(
    tx,
    rows.map(([topic, key], index) => record(topic, key, String(index))),
  );
  await commit();
}

async function leadOf({ store }: OutboxPlace): Promise<OutboxLead> {
  const lead = await store.lead();
  if (lead === undefined) throw new Error('another process leads');
  return lead;
}

function claim(lead: OutboxLead, options: { limit?: number; exceptTopics?: string[] } = {}) {
  return lead.claim({ limit: 100, exceptTopics: [], nowMs: NOW_MS, ...options });
}

const keysOf = (rows: readonly ClaimedRow[]) => rows.map(({ orderedBy }) => orderedBy);
const idsOf = (rows: readonly { readonly id: number }[]) => rows.map(({ id }) => id);
const isRising = (numbers: readonly number[]) => numbers.every((n, i) => i === 0 || n > (numbers[i - 1] ?? n));

export const OUTBOX_STORE_CASES: readonly OutboxStoreCase[] = [
  {
    name: 'gives what was committed, as it was, in order, and nothing that was rolled back',
    run: async (place) => {
      const bytes = outboxRecord('bytes', {
        payload: new Uint8Array([0, 255, 1]),
        key: new Uint8Array([0, 1]),
        properties: { 'a\u0000b': '\ud800', __proto__: 'x' },
        eventTimeMs: 5,
        deliverAtMs: 6,
      });
      const nothing = outboxRecord('tombstones', { payload: null, key: 'k\u0000', properties: {} });
      const empty = outboxRecord('empty', { payload: new Uint8Array(0), properties: {} });
      const kept = await place.begin();
      await place.store.append(kept.tx, [bytes, nothing]);
      await place.store.append(kept.tx, [empty]);
      await kept.commit();
      const dropped = await place.begin();
      await place.store.append(dropped.tx, [nothing]);
      await dropped.rollback();
      const rows = await claim(await leadOf(place));
      expect(rows).toHaveLength(3);
      for (const [index, given] of [bytes, nothing, empty].entries()) {
        const { id: _id, number: _number, payload, ...row } = rows[index]!;
        expect(row).toMatchObject({ topic: given.topic, headers: given.headers, orderedBy: given.orderedBy });
        expect(payload === null ? null : [...payload]).toEqual(given.payload === null ? null : [...given.payload]);
      }
      expect(isRising(idsOf(rows))).toBe(true);
      expect(isRising(rows.map(({ number }) => number))).toBe(true);
    },
  },
  {
    name: 'claims each row once, up to the limit, and gives numbers that rise and follow the clock',
    run: async (place) => {
      await add(place, ['t'], ['t'], ['t']);
      const lead = await leadOf(place);
      const [first, second] = [await claim(lead, { limit: 2 }), await claim(lead)];
      expect([first.length, second.length, (await claim(lead)).length]).toEqual([2, 1, 0]);
      const numbers = [...first, ...second].map(({ number }) => number);
      expect(isRising(numbers)).toBe(true);
      expect(numbers[0]).toBeGreaterThanOrEqual(NOW_MS * 1_000);
      expect(idsOf(await lead.claimed())).toEqual(idsOf([...first, ...second]));
    },
  },
  {
    name: 'claims nothing of the topics that are left out',
    run: async (place) => {
      await add(place, ['a'], ['b'], ['a']);
      const lead = await leadOf(place);
      expect((await claim(lead, { exceptTopics: ['a'] })).map(({ topic }) => topic)).toEqual(['b']);
      expect((await claim(lead)).map(({ topic }) => topic)).toEqual(['a', 'a']);
    },
  },
  {
    name: 'does not skip a lower id that is committed late, and gives it a higher number',
    needsConcurrentTransactions: true,
    run: async (place) => {
      const late = await place.begin();
      await place.store.append(late.tx, [record('t', 'late')]);
      await add(place, ['t', 'early']);
      const lead = await leadOf(place);
      const early = await claim(lead);
      expect(keysOf(early)).toEqual(['"early"']);
      await lead.delete(idsOf(early));
      await late.commit();
      const rows = await claim(lead);
      expect(keysOf(rows)).toEqual(['"late"']);
      expect(rows[0]!.id).toBeLessThan(early[0]!.id);
      expect(rows[0]!.number).toBeGreaterThan(early[0]!.number);
    },
  },
  {
    name: 'gives what was claimed and not deleted to the next leader, with its numbers, and never gives a number again',
    run: async (place) => {
      await add(place, ['t', 'a'], ['t', 'b'], ['t', 'c']);
      const first = await leadOf(place);
      const rows = await claim(first);
      await first.delete([rows[1]!.id]);
      await place.leaderDies(first);
      const second = await leadOf(place);
      expect(second.outboxId).toBe(first.outboxId);
      const claimed = await second.claimed();
      expect(claimed.map(({ id, number }) => [id, number])).toEqual(
        [rows[0]!, rows[2]!].map(({ id, number }) => [id, number]),
      );
      await second.delete(idsOf(claimed));
      await second.delete(idsOf(claimed));
      await add(place, ['t']);
      expect((await claim(second))[0]!.number).toBeGreaterThan(rows[2]!.number);
    },
  },
  {
    name: 'has one leader: another process leads when it ends or dies, and the former one changes nothing any more',
    run: async (place) => {
      await add(place, ['t']);
      const first = await leadOf(place);
      expect(await place.store.lead()).toBeUndefined();
      await first.end();
      await first.end();
      const second = await leadOf(place);
      await place.leaderDies(second);
      const third = await leadOf(place);
      const rows = await claim(third);
      await expect(second.delete(idsOf(rows))).rejects.toMatchObject({ code: 'OUTBOX_LEAD_LOST' });
      await expect(claim(second)).rejects.toMatchObject({ code: 'OUTBOX_LEAD_LOST' });
      expect(await third.claimed()).toHaveLength(1);
      await third.end();
    },
  },
  {
    name: 'a refused row keeps its key from being claimed, and takes the numbers of those behind it',
    run: async (place) => {
      await add(place, ['t', 'a'], ['t', 'b'], ['t', 'a'], ['u', 'a'], ['t']);
      const lead = await leadOf(place);
      const rows = await claim(lead);
      await lead.refuse(rows[0]!.id, { reason: 'too large\u0000', nowMs: NOW_MS });
      await lead.refuse(rows[0]!.id, { reason: 'too large\u0000', nowMs: NOW_MS });
      expect(idsOf(await lead.claimed())).toEqual(idsOf([rows[1]!, rows[3]!, rows[4]!]));
      await add(place, ['t', 'a'], ['t', 'b']);
      const more = await claim(lead);
      expect(keysOf(more)).toEqual(['"b"']);
      const [refused, ...others] = await place.store.refused(10);
      expect(refused).toMatchObject({ id: rows[0]!.id, topic: 't', reason: expect.stringContaining('too large') });
      expect(others).toEqual([]);
      // Claimed ones and those that wait, not the one that is refused.
      expect(await lead.summary()).toMatchObject({ refused: 1, waiting: 6, oldestMs: expect.any(Number) });
    },
  },
  {
    name: 'release makes a refused row and those behind it wait again, in order, with new numbers',
    run: async (place) => {
      await add(place, ['t', 'a'], ['t', 'a'], ['t', 'b']);
      const lead = await leadOf(place);
      const rows = await claim(lead);
      await lead.refuse(rows[0]!.id, { reason: 'no', nowMs: NOW_MS });
      expect(await place.store.release(rows[1]!.id)).toBe(false);
      expect(await place.store.release(rows[0]!.id)).toBe(true);
      expect(await place.store.release(rows[0]!.id)).toBe(false);
      const again = await claim(lead);
      expect(idsOf(again)).toEqual(idsOf([rows[0]!, rows[1]!]));
      expect(again[0]!.number).toBeGreaterThan(rows[2]!.number);
    },
  },
  {
    name: 'skip deletes a refused row, and only that; a row without a key is refused alone',
    run: async (place) => {
      await add(place, ['t'], ['t'], ['t', 'a'], ['t', 'a']);
      const lead = await leadOf(place);
      const rows = await claim(lead);
      await lead.refuse(rows[0]!.id, { reason: 'no', nowMs: NOW_MS });
      await lead.refuse(rows[2]!.id, { reason: 'no', nowMs: NOW_MS });
      expect(idsOf(await lead.claimed())).toEqual([rows[1]!.id]);
      expect(await place.store.skip(rows[1]!.id)).toBe(false);
      expect([await place.store.skip(rows[0]!.id), await place.store.skip(rows[2]!.id)]).toEqual([true, true]);
      expect(idsOf(await claim(lead))).toEqual([rows[3]!.id]);
      expect(await place.store.refused(10)).toEqual([]);
    },
  },
  {
    name: 'lists the first refused rows',
    run: async (place) => {
      await add(place, ['t'], ['t'], ['t']);
      const lead = await leadOf(place);
      for (const { id } of await claim(lead)) await lead.refuse(id, { reason: 'no', nowMs: NOW_MS });
      expect(await place.store.refused(2)).toHaveLength(2);
      expect(await lead.summary()).toMatchObject({ refused: 3, waiting: 0, oldestMs: undefined });
    },
  },
  {
    name: 'tells the leader of what was committed',
    run: async (place) => {
      const lead = await leadOf(place);
      const told = new Promise<void>((resolve) => lead.onNews(resolve));
      await add(place, ['t']);
      await told;
      expect(await claim(lead)).toHaveLength(1);
      expect(await lead.summary()).toMatchObject({ oldestMs: expect.any(Number) });
    },
  },
  {
    name: 'opens again without a word',
    run: async ({ store }) => {
      await Promise.all([store.open(), store.open()]);
      await store.open();
    },
  },
];
