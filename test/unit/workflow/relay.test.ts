// What the relay of workflows' messages has in hand, and whom it holds up, while the broker takes none or not all.
import { FakeClock } from 'pulsework/testing';
import type { OutgoingRequest, OutgoingRow, WorkflowStore } from 'pulsework/workflow';
import { memoryWorkflowStore } from 'pulsework/workflow';
import { beforeEach, expect, it } from 'vitest';
import type { MessageId } from '../../../src/core/message-id.js';
import type { PendingPublish } from '../../../src/runtime/pending-settlement.js';
import type { PublishFailure } from '../../../src/runtime/publishers.js';
import { Relay } from '../../../src/workflow/relay.js';
import { storeWith } from '../../support/workflow/store-with.js';

const RECEIPT: MessageId = { ledgerId: 1n, entryId: 1n, partition: -1, batchIndex: -1 } as unknown as MessageId;
const nothing = (): void => undefined;
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

let clock: FakeClock;
let store: WorkflowStore;
let relay: Relay;
/** Of messages whose publish fails, by topic or by id. */
let failing: Map<string, PublishFailure['kind']>;
let tries: { readonly id: string; readonly sequenceId: number | undefined }[];
let arrived: string[];
let takes: { readonly rows: number; readonly leftOut: number }[];
let underWay: number;
let mostUnderWay: number;
/** As if another process had all of them. */
let isParted: boolean;

beforeEach(async () => {
  [clock, store, failing, tries, arrived, takes] = [new FakeClock(), memoryWorkflowStore(), new Map(), [], [], []];
  [underWay, mostUnderWay, isParted] = [0, 0, false];
  await store.open();
  const takeOutgoing = async (request: OutgoingRequest) => {
    const rows = isParted ? [] : await store.takeOutgoing(request);
    takes.push({ rows: rows.length, leftOut: request.exceptWorkflows?.length ?? 0 });
    return rows;
  };
  const counted = storeWith(store, { takeOutgoing });
  relay = new Relay({
    parts: { store: (_what, call) => call(counted), clock, logger, owner: 'one', leaseMs: 30_000 },
    publish,
  });
});

async function publish(pending: PendingPublish): Promise<PublishFailure | undefined> {
  const id = String(pending.message.properties['id']);
  tries.push({ id, sequenceId: pending.sequenceId });
  pending.sequenceId ??= tries.length;
  mostUnderWay = Math.max(mostUnderWay, ++underWay);
  await Promise.resolve();
  underWay -= 1;
  const kind = failing.get(pending.topic) ?? failing.get(id);
  if (kind !== undefined) return { kind, error: new Error('not now') };
  pending.receipt = RECEIPT;
  arrived.push(id);
  return undefined;
}

/** Of the workflow `id`: messages `id/0`, `id/1`, ... */
async function write(id: string, count: number, topic = 'a'): Promise<void> {
  const key = { name: 'job', id };
  await store.start(key, { version: 1, seed: 's', attributes: {} }, 0);
  const held = await store.acquire(key, { owner: 'one', nowMs: 0, leaseMs: 1 });
  const outgoing = Array.from({ length: count }, (_, n): OutgoingRow => {
    const properties = { id: `${id}/${n}` };
    return { messageId: `${id}/${n}`, message: { topic, payload: null, properties } };
  });
  const change = { status: 'running', waits: [] } as const;
  const { epoch = 0, writeVersion: expectedVersion = 0 } = held ?? {};
  await store.write(key, { epoch, expectedVersion, nowMs: 0, entries: [], consumed: [], outgoing, change });
}

async function pass(seconds: number): Promise<void> {
  for (let n = 0; n < seconds; n++) {
    relay.wake();
    await clock.advanceBy(1_000);
  }
}

it('a broker that is away for long: few rows in hand, few publishes, and then all arrive once in order', async () => {
  failing.set('a', 'passing');
  for (let n = 0; n < 1_250; n++) await write(`w${n}`, 4);
  await pass(120);

  expect(Math.max(...takes.map(({ rows }) => rows))).toBe(100);
  expect(Math.max(...takes.map(({ leftOut }) => leftOut))).toBeLessThan(1_100);
  expect(mostUnderWay).toBeLessThanOrEqual(100);
  // At once and each five seconds the first messages of 25 workflows: no wake in between tries them again.
  expect(tries).toHaveLength((1 + 120 / 5) * 25);
  expect(takes.length).toBeLessThanOrEqual((1 + 120 / 5) * 10);

  failing.clear();
  await pass(10);
  expect(arrived).toHaveLength(5_000);
  expect(new Set(arrived).size).toBe(5_000);
  const inOrder = byWorkflow();
  expect(inOrder.size).toBe(1_250);
  for (const [id, own] of inOrder) expect(own).toEqual([0, 1, 2, 3].map((at) => `${id}/${at}`));
});

function byWorkflow(): ReadonlyMap<string, string[]> {
  const found = new Map<string, string[]>();
  for (const id of arrived) {
    const [workflow = ''] = id.split('/');
    const own = found.get(workflow) ?? [];
    own.push(id);
    found.set(workflow, own);
  }
  return found;
}

it('many workflows whose messages are refused for good hold up only themselves', async () => {
  for (let n = 0; n < 150; n++) {
    await write(`bad${n}`, 3);
    failing.set(`bad${n}/0`, 'refused');
  }
  for (let n = 0; n < 150; n++) await write(`good${n}`, 1);
  await pass(1);
  expect(arrived).toHaveLength(150);

  await pass(8);
  expect(tries.filter(({ id }) => id === 'bad0/0')).toHaveLength(2);
  failing.clear();
  await pass(5);
  expect(arrived).toHaveLength(600);
  expect(byWorkflow().get('bad7')).toEqual(['bad7/0', 'bad7/1', 'bad7/2']);
});

it('one with a long backlog behind a refused message does not take the place of others', async () => {
  failing.set('bad/0', 'refused');
  await write('bad', 1_500);
  await write('good', 2);
  await pass(1);

  expect(arrived).toEqual(['good/0', 'good/1']);
});

it('a topic that is away holds up no other one', async () => {
  failing.set('a', 'passing');
  for (let n = 0; n < 500; n++) await write(`w${n}`, 1);
  await write('other', 1, 'b');
  await pass(1);

  expect(arrived).toEqual(['other/0']);
  expect(tries).toHaveLength(101);
});

it('a repeat has the sequence id of the first try, until the row is in other hands', async () => {
  failing.set('a', 'passing');
  await write('w', 1);
  await pass(6);
  expect(tries).toEqual([
    { id: 'w/0', sequenceId: undefined },
    { id: 'w/0', sequenceId: 1 },
  ]);

  isParted = true;
  await pass(10);
  isParted = false;
  await pass(1);
  expect(tries.slice(2)).toEqual([{ id: 'w/0', sequenceId: undefined }]);
});

it('what was published is not published again when forgetting it fails', async () => {
  await write('w', 2);
  const sent = store.sent.bind(store);
  store.sent = () => Promise.reject(new Error('not now'));
  await pass(11);
  store.sent = sent;
  await pass(6);

  expect(arrived).toEqual(['w/0', 'w/1']);
  expect(await store.takeOutgoing({ owner: 'one', nowMs: 0, leaseMs: 1, limit: 9 })).toEqual([]);
});
