// Where records of transactions lie and how they are found, by the rules T-31 to T-35; on each metadata store.
import type { MetadataStore } from 'pulsework/sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TxnMetadataStore } from '../../../../src/broker/transactions/txn-metadata-store.js';
import * as paths from '../../../../src/broker/transactions/txn-paths.js';
import type { AckOp, TxnHeader, WriteOp } from '../../../../src/broker/transactions/txn-records.js';
import { transactionKey } from '../../../../src/core/transaction-id.js';
import { parseTransactionKey } from '../../../../src/broker/transactions/txn-paths.js';
import type { MetadataPlace } from '../../../support/metadata-places.js';
import { metadataPlaces } from '../../../support/metadata-places.js';

const SEGMENT = 'segment://shop/eu/orders/0000-7fff-3';
const ENCODED = 'segment%3A%2F%2Fshop%2Feu%2Forders%2F0000-7fff-3';
const OPEN: TxnHeader = { state: 'OPEN', timeoutMs: 60_000, createdAtMs: 1_000, finalizedAtMs: null, owner: null };
const WRITE: WriteOp = { kind: 'WRITE', segment: SEGMENT, ledgerId: 0, entryId: 0 };
const ACK: AckOp = {
  kind: 'ACK',
  segment: SEGMENT,
  subscription: 'bil/ling:1',
  ledgerId: 4,
  entryId: 2,
  cumulative: null,
  batch: null,
};
const INDEXES = Object.values(paths.TXN_INDEXES);

describe('paths and keys', () => {
  it('T-31: the layout is the merged one, all of it below /txn', () => {
    expect(paths.headerPath('0_7')).toBe('/txn/id/0_7');
    expect(paths.opPrefix('0_7')).toBe('/txn/op/0_7');
    expect(paths.segmentEventsPrefix(SEGMENT)).toBe(`/txn/segment-events/${ENCODED}`);
    expect(paths.subscriptionEventsPrefix(SEGMENT, 'billing')).toBe(`/txn/subscription-events/${ENCODED}:billing`);
    expect(paths.watermarkPath(SEGMENT)).toBe(`/txn/segment-state/watermark/${ENCODED}`);
    expect(paths.abortedPath(SEGMENT, '0_7')).toBe(`/txn/segment-state/aborted/${ENCODED}:0_7`);
    expect(paths.counterPath(3)).toBe('/txn/tc-seq/3');
  });

  it('T-32: a transaction is <most>_<least>, both unsigned', () => {
    expect(transactionKey({ mostBits: 2n, leastBits: 41n })).toBe('2_41');
    expect(transactionKey({ mostBits: 0n, leastBits: -1n })).toBe('0_18446744073709551615');
    expect(parseTransactionKey('2_41')).toEqual({ mostBits: 2n, leastBits: 41n });
    for (const wrong of ['', '2', '2_', '_2', '02_1', '2_41_3', '-1_2', '0_18446744073709551616']) {
      expect(() => parseTransactionKey(wrong)).toThrow(/<most>_<least>/);
    }
  });

  it('T-32: the number of an operation stands after the last dash', () => {
    expect(paths.transactionOfPath('/txn/op/2_41-00000000000000000007')).toBe('2_41');
    expect(paths.transactionOfPath('/txn/id/2_41')).toBe('2_41');
  });

  it('T-32: names are encoded as Java does, so that two of them never meet', () => {
    expect(paths.segmentKey("a b+c~(d)!*'é")).toBe('a+b%2Bc%7E%28d%29%21*%27%C3%A9');
    expect(paths.subscriptionKey('a:b', 'c')).toBe('a%3Ab:c');
    expect(paths.subscriptionKey('a', 'b:c')).toBe('a:b%3Ac');
    expect(() => paths.segmentKey('half a pair: \ud800')).toThrow(/a segment must be/);
  });

  it('T-32: numbers in keys have 20 digits', () => {
    expect(paths.numberKey(61_000)).toBe('00000000000000061000');
    expect(paths.finalStateKey('COMMITTED', 5)).toBe('COMMITTED:00000000000000000005');
    expect(paths.abortedKey(SEGMENT, 4, 12)).toBe(`${ENCODED}:00000000000000000004:00000000000000000012`);
  });
});

describe.each(Object.entries(metadataPlaces))('records in a metadata store (%s)', (_name, newPlace) => {
  let place: MetadataPlace;
  let store: MetadataStore;
  let records: TxnMetadataStore;

  beforeEach(async () => {
    place = newPlace();
    store = place.newStore();
    await store.open();
    records = new TxnMetadataStore(store);
  });

  afterEach(async () => {
    await store.close();
    place.end();
  });

  /** Every index that an entry stands in, with its key there. */
  async function placesOf(path: string): Promise<readonly string[]> {
    const found = await Promise.all(INDEXES.map((index) => store.scanIndex({ index })));
    return found.flatMap((entries, at) =>
      entries.filter((entry) => entry.path === path).map(({ key }) => `${INDEXES[at]} ${key}`),
    );
  }

  async function recordAt(path: string): Promise<unknown> {
    return JSON.parse(new TextDecoder().decode((await store.get(path))?.value));
  }

  it('T-33: a header stands in exactly one index: by its deadline, then by its final state', async () => {
    await records.createHeader('0_7', OPEN);
    expect(await placesOf('/txn/id/0_7')).toEqual(['idx:txn-by-deadline 00000000000000061000']);

    const open = await records.readHeader('0_7');
    await records.finalizeHeader(open!, 'ABORTED', 9_000);
    expect(await placesOf('/txn/id/0_7')).toEqual(['idx:txn-by-final-state ABORTED:00000000000000009000']);
  });

  it('T-34: the header holds state, timeout, both times and owner, with the version of its form', async () => {
    await records.createHeader('0_7', { ...OPEN, owner: 'anna' });
    expect(await recordAt('/txn/id/0_7')).toEqual({ formatVersion: 1, ...OPEN, owner: 'anna' });

    await records.finalizeHeader((await records.readHeader('0_7'))!, 'COMMITTED', 9_000);
    expect((await records.readHeader('0_7'))?.header).toEqual({
      ...OPEN,
      owner: 'anna',
      state: 'COMMITTED',
      finalizedAtMs: 9_000,
    });
  });

  it('T-30: of two decisions made from the same reading one is written', async () => {
    await records.createHeader('0_7', OPEN);
    const open = await records.readHeader('0_7');
    await records.finalizeHeader(open!, 'COMMITTED', 2_000);

    await expect(records.finalizeHeader(open!, 'ABORTED', 2_001)).rejects.toMatchObject({
      code: 'STORE_VERSION_CONFLICT',
    });
    expect((await records.readHeader('0_7'))?.header).toMatchObject({ state: 'COMMITTED', finalizedAtMs: 2_000 });
  });

  it('T-35: a header is made once', async () => {
    await records.createHeader('0_7', OPEN);

    await expect(records.createHeader('0_7', OPEN)).rejects.toMatchObject({ code: 'STORE_VERSION_CONFLICT' });
  });

  it('is deleted as it was read, or not at all', async () => {
    await records.createHeader('0_7', OPEN);
    const open = await records.readHeader('0_7');
    await records.finalizeHeader(open!, 'COMMITTED', 2_000);

    expect(await records.deleteHeader(open!)).toBe(false);
    const ended = await records.readHeader('0_7');
    expect(await records.deleteHeader(ended!)).toBe(true);
    expect(await records.deleteHeader(ended!)).toBe(false);
    expect(await records.readHeader('0_7')).toBeUndefined();
  });

  it('T-33, T-34: operations are found by transaction, by segment, and by segment and subscription', async () => {
    const [write, ack] = [await records.appendOp('0_7', WRITE), await records.appendOp('0_7', ACK)];
    const other = await records.appendOp('0_70', { ...ACK, cumulative: true });

    expect(write).toMatch(/^\/txn\/op\/0_7-\d{20}$/);
    expect(await placesOf(write)).toEqual([`idx:writes-by-segment ${ENCODED}`, 'idx:ops-by-txn 0_7']);
    expect(await placesOf(ack)).toEqual([
      `idx:acks-by-segment-subscription ${ENCODED}:bil%2Fling%3A1`,
      'idx:ops-by-txn 0_7',
    ]);
    expect(await records.opsOf('0_7')).toEqual([
      { path: write, transaction: '0_7', op: WRITE },
      { path: ack, transaction: '0_7', op: ACK },
    ]);
    expect(await records.writesTo(SEGMENT)).toEqual([{ path: write, transaction: '0_7', op: WRITE }]);
    expect(await records.acksOf(SEGMENT, 'bil/ling:1')).toEqual([
      { path: ack, transaction: '0_7', op: ACK },
      { path: other, transaction: '0_70', op: { ...ACK, cumulative: true } },
    ]);
    expect(await records.acksOf(SEGMENT, 'bil')).toEqual([]);
    expect(await recordAt(write)).toEqual({ formatVersion: 1, ...WRITE });
  });

  it('T-42: which messages of a batch are acknowledged is kept', async () => {
    const op: AckOp = { ...ACK, batch: { size: 40, indexes: [0, 39] } };
    await records.appendOp('0_7', op);

    expect((await records.acksOf(SEGMENT, ACK.subscription))[0]?.op).toEqual(op);
  });

  it('goes through transactions with operations in the order of their keys', async () => {
    for (const transaction of ['0_7', '0_10', '0_7', '0_9']) await records.appendOp(transaction, ACK);
    const found: string[] = [];
    for (let at = await records.nextWithOps(); at !== undefined; at = await records.nextWithOps(at)) found.push(at);

    expect(found).toEqual(['0_10', '0_7', '0_9']);
    expect(await records.hasOps('0_9')).toBe(true);
    expect(await records.hasOps('0_1')).toBe(false);
  });

  it('deletes an operation once', async () => {
    const path = await records.appendOp('0_7', ACK);

    expect(await records.deleteOp(path)).toBe(true);
    expect(await records.deleteOp(path)).toBe(false);
    expect(await records.opsOf('0_7')).toEqual([]);
  });

  it('finds open transactions up to a deadline, itself included, the earliest first', async () => {
    await records.createHeader('0_1', { ...OPEN, timeoutMs: 300 });
    await records.createHeader('0_2', { ...OPEN, timeoutMs: 100 });
    await records.createHeader('0_3', { ...OPEN, timeoutMs: 200 });
    await records.finalizeHeader((await records.readHeader('0_3'))!, 'COMMITTED', 1_050);

    const named = async (nowMs: number, limit = 10) =>
      (await records.openPastDeadline(nowMs, limit)).map(({ transaction }) => transaction);
    expect(await named(1_099)).toEqual([]);
    expect(await named(1_100)).toEqual(['0_2']);
    expect(await named(1_300)).toEqual(['0_2', '0_1']);
    expect(await named(1_300, 1)).toEqual(['0_2']);
    expect((await records.open()).map(({ transaction }) => transaction)).toEqual(['0_2', '0_1']);
  });

  it('finds ended transactions by state and time, page by page', async () => {
    for (const [least, state] of ['ABORTED', 'COMMITTED', 'COMMITTED', 'COMMITTED'].entries()) {
      await records.createHeader(`0_${least}`, OPEN);
      const open = await records.readHeader(`0_${least}`);
      await records.finalizeHeader(open!, state as 'COMMITTED' | 'ABORTED', 5_000 + Math.max(least, 2));
    }
    const committed = { state: 'COMMITTED', untilMs: 5_003, limit: 2 } as const;

    const first = await records.ended(committed);
    expect(first.map(({ transaction }) => transaction)).toEqual(['0_1', '0_2']);
    const rest = await records.ended({ ...committed, after: first.at(-1) });
    expect(rest.map(({ transaction }) => transaction)).toEqual(['0_3']);
    expect(await records.ended({ ...committed, untilMs: 5_001 })).toEqual([]);
    expect((await records.ended({ ...committed, state: 'ABORTED' })).map(({ transaction }) => transaction)).toEqual([
      '0_0',
    ]);
  });

  it('T-34, T-38: an event names transaction and decision, and wakes who watches its segment or subscription', async () => {
    const heard: string[] = [];
    const wait = async (count: number) => {
      while (heard.length < count) await new Promise((resolve) => setImmediate(resolve));
    };
    const watches = [
      await records.watchSegment(SEGMENT, () => heard.push('segment')),
      await records.watchSubscription(SEGMENT, 'billing', () => heard.push('billing')),
      await records.watchSubscription(SEGMENT, 'audit', () => heard.push('audit')),
    ];
    await records.publishSubscriptionEvent(SEGMENT, 'billing', { transaction: '0_7', decision: 'ABORTED' }, 10);
    await wait(1);
    await records.publishSegmentEvent(SEGMENT, { transaction: '0_7', decision: 'ABORTED' }, 11);
    await wait(2);
    for (const watch of watches) watch.close();

    expect(heard).toEqual(['billing', 'segment']);
    const [event = ''] = await records.eventsUntil(10, 10);
    expect(event).toMatch(new RegExp(`^/txn/subscription-events/${ENCODED}:billing-\\d{20}$`));
    expect(await recordAt(event)).toEqual({ formatVersion: 1, transaction: '0_7', decision: 'ABORTED' });
    expect(await placesOf(event)).toEqual(['idx:txn-event-by-time 00000000000000000010']);
    expect(await records.eventsUntil(11, 10)).toHaveLength(2);
  });

  it('refuses records of a form that it does not know, by their path', async () => {
    const put = (text: string) => store.put('/txn/id/0_7', new TextEncoder().encode(text));
    const refused = (why: RegExp) =>
      expect(records.readHeader('0_7')).rejects.toMatchObject({
        code: 'STORE_FORMAT_UNKNOWN',
        message: expect.stringMatching(why) as string,
      });

    await put(JSON.stringify({ ...OPEN, formatVersion: 2 }));
    await refused(/"\/txn\/id\/0_7": it has format version 2, this program reads 1/);
    await put(JSON.stringify(OPEN));
    await refused(/no format version/);
    await put('{"formatVersion":');
    await refused(/it is no JSON/);
    await put('7');
    await refused(/it is no JSON object/);
  });
});
