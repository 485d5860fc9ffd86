// What may be acknowledged in a transaction, and what its end does to the subscription: T-10 to T-20, one by one.
import { describe, expect, it } from 'vitest';
import type { PendingAckStore } from '../../../../src/broker/transactions/pending-ack-store.js';
import { PulseworkError, TransportError } from '../../../../src/core/errors.js';
import { settlePromises } from '../../../../src/testing/fake-clock.js';
import type { PendingWorld } from './pending-ack-kit.js';
import { A, B, C, loggedWorld, pendingAcksOf, places, TestSubscription, withheld } from './pending-ack-kit.js';

const SUBJECT = '[persistent://public/default/orders][s] Transaction:';

function conflict(text: string): object {
  return { code: 'TRANSACTION_CONFLICT', retriable: false, message: `${SUBJECT}${text}` };
}

describe('an acknowledgement of single messages in a transaction', () => {
  it('of a message that is acknowledged is a conflict (T-10)', async () => {
    const { acks, subscription } = loggedWorld();
    subscription.normalAck(3);
    const text = '(1,1) try to ack message:7:3 already acked before.';
    await expect(acks.acknowledge(A, places(3))).rejects.toMatchObject(conflict(text));
  });

  it.each([
    ['another transaction', B, '(1,2)'],
    ['its own transaction', A, '(1,1)'],
  ])('of a message that is pending in %s is a conflict (T-10)', async (_, transaction, text) => {
    const { acks } = loggedWorld();
    await acks.acknowledge(A, places(3));
    const refused = conflict(`${text} try to ack message:7:3 in pending ack status.`);
    await expect(acks.acknowledge(transaction, places(3))).rejects.toMatchObject(refused);
  });

  it('of a message that is being recorded is a conflict too: both would be (T-10)', async () => {
    const { acks } = loggedWorld();
    const both = await Promise.allSettled([acks.acknowledge(A, places(3)), acks.acknowledge(B, places(3))]);
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  });

  it('of a batch conflicts only where the messages are the same (T-10)', async () => {
    const { acks, subscription } = loggedWorld({ batches: { 3: 4 } });
    await acks.acknowledge(A, places('3/0', '3/1'));
    await acks.acknowledge(B, places('3/2'));
    const pending = conflict('(1,2) try to ack batch message:7:3 in pending ack status.');
    await expect(acks.acknowledge(B, places('3/1'))).rejects.toMatchObject(pending);
    subscription.normalAck(3, 3);
    const acked = conflict('(1,2) try to ack message:7:3 already acked before.');
    await expect(acks.acknowledge(B, places('3/3'))).rejects.toMatchObject(acked);
  });

  it('of a whole batch conflicts with any message of it that is pending (T-10)', async () => {
    const { acks } = loggedWorld({ batches: { 3: 4 } });
    await acks.acknowledge(A, places('3/0'));
    const refused = conflict('(1,2) try to ack message:7:3 in pending ack status.');
    await expect(acks.acknowledge(B, places(3))).rejects.toMatchObject(refused);
  });

  it('takes all of a list or nothing (T-11)', async () => {
    const world = loggedWorld();
    const { acks, subscription } = world;
    await acks.acknowledge(A, places(3));
    subscription.take();
    await expect(acks.acknowledge(B, places(1, 2, 3, 4))).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' });
    expect(subscription.take()).toEqual([]);
    expect(withheld(world)).toEqual([3]);
    await acks.acknowledge(C, places(1, 2, 4));
  });

  it('takes the same message twice in one list as once (T-11)', async () => {
    const { acks, subscription } = loggedWorld();
    await acks.acknowledge(A, places(3, 3));
    await acks.commit(A);
    expect(subscription.take()).toEqual(['left 3', 'acknowledged 3']);
  });
});

describe('a cumulative acknowledgement in a transaction', () => {
  it('is of one message: more are not allowed (T-12)', async () => {
    const { acks } = loggedWorld();
    const message = `${SUBJECT}(1,1) invalid cumulative ack received with multiple message ids.`;
    const refused = { code: 'NOT_ALLOWED', message };
    await expect(acks.acknowledgeUpTo(A, places(1, 2))).rejects.toMatchObject(refused);
    await expect(acks.acknowledgeUpTo(A, [])).rejects.toMatchObject(refused);
  });

  it('at or before the mark-delete position is a conflict (T-12)', async () => {
    const { acks, subscription } = loggedWorld();
    subscription.normalAckUpTo(4);
    const text = "(1,1) try to cumulative ack position: 7:4 within range of cursor's markDeletePosition: 7:4";
    await expect(acks.acknowledgeUpTo(A, places(4))).rejects.toMatchObject(conflict(text));
    await acks.acknowledgeUpTo(A, places(5));
  });

  it('while another transaction has one is a conflict, until that one ends (T-12)', async () => {
    const { acks } = loggedWorld();
    await acks.acknowledgeUpTo(A, places(4));
    const text = '(1,2) try to cumulative batch ack position: 7:6 within range of current currentPosition: 7:4';
    await expect(acks.acknowledgeUpTo(B, places(6))).rejects.toMatchObject(conflict(text));
    await acks.abort(A);
    await acks.acknowledgeUpTo(B, places(6));
  });

  it('of the same transaction only goes further, inside a batch too (T-12)', async () => {
    const { acks, subscription } = loggedWorld({ batches: { 6: 3 } });
    await acks.acknowledgeUpTo(A, places(4));
    await expect(acks.acknowledgeUpTo(A, places(4))).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' });
    await acks.acknowledgeUpTo(A, places('6/0'));
    await acks.acknowledgeUpTo(A, places('6/1'));
    await expect(acks.acknowledgeUpTo(A, places('6/0'))).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' });
    await acks.acknowledgeUpTo(A, places('6/2'));
    await expect(acks.acknowledgeUpTo(A, places(6))).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' });
    subscription.take();
    await acks.commit(A);
    expect(subscription.take()).toEqual(['acknowledged up to 6']);
  });
});

describe('what is recorded', () => {
  it('is checked before: what conflicts leaves no record (T-13)', async () => {
    const appended: string[] = [];
    const appendIndividual = async (transaction: string): Promise<void> => void appended.push(transaction);
    const { acks } = loggedWorld({}, { appendIndividual });
    await acks.acknowledge(A, places(3));
    await expect(acks.acknowledge(B, places(3))).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' });
    expect(appended).toEqual([A]);
  });

  it('and fails stays pending, since it may be recorded, until the transaction ends (T-13)', async () => {
    const failed = new PulseworkError('STORE_FAILED', 'no answer');
    const world = loggedWorld({}, { appendIndividual: () => Promise.reject(failed) });
    const { acks, subscription } = world;
    await expect(acks.acknowledge(A, places(3))).rejects.toBe(failed);
    expect(withheld(world)).toEqual([3]);
    await expect(acks.acknowledge(B, places(3))).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' });
    await acks.abort(A);
    expect(withheld(world)).toEqual([]);
    expect(subscription.take()).toEqual(['redelivered 3']);
  });

  it.each(['acknowledge', 'acknowledgeUpTo'] as const)(
    'in a transaction that is not open any more is not: nothing of %s is pending',
    async (call) => {
      const ended = new TransportError('TRANSACTION_ENDED', 'late', { retriable: false });
      const append = (): Promise<void> => Promise.reject(ended);
      const world = loggedWorld({}, { appendIndividual: append, appendCumulative: append });
      await expect(world.acks[call](A, places(3))).rejects.toBe(ended);
      expect(withheld(world)).toEqual([]);
      expect(world.acks.transactions).toEqual([]);
    },
  );
});

describe('an acknowledgement without a transaction', () => {
  it('of a pending message counts, and an abort does not bring it back (T-14)', async () => {
    const { acks, subscription } = loggedWorld();
    await acks.acknowledge(A, places(3, 4));
    subscription.normalAck(3);
    subscription.take();
    await acks.abort(A);
    expect(subscription.take()).toEqual(['redelivered 4']);
  });

  it('leaves nothing pending of it, so that the transaction is not known any more (T-14)', async () => {
    const { acks, subscription } = loggedWorld({ batches: { 3: 2 } });
    await acks.acknowledge(A, places('3/0', 4));
    subscription.normalAck(3, 0);
    subscription.normalAckUpTo(4);
    expect(acks.transactions).toEqual([]);
  });

  it('of a message that is just being recorded counts too (T-14)', async () => {
    const world = loggedWorld();
    await world.acks.open();
    const recording = world.acks.acknowledge(A, places(3, 4));
    world.subscription.normalAck(3);
    await recording;
    await world.acks.abort(A);
    expect(world.subscription.take()).toContain('redelivered 4');
  });

  it('of one message of a batch leaves the others pending (T-14)', async () => {
    const { acks, subscription } = loggedWorld({ batches: { 3: 3 } });
    await acks.acknowledge(A, places('3/0', '3/1'));
    subscription.normalAck(3, 0);
    subscription.take();
    await acks.commit(A);
    // The first again: storing it may have failed.
    expect(subscription.take()).toEqual(['acknowledged 3/0', 'acknowledged 3/1']);
  });
});

describe('what is pending', () => {
  it('is not sent: of a batch the messages that are, and the entry when nothing is left (T-15)', async () => {
    const world = loggedWorld({ batches: { 3: 3 } });
    const { acks, subscription } = world;
    await acks.acknowledge(A, places('3/0', 5));
    expect(withheld(world)).toEqual([5]);
    expect([0, 1, 2].filter((index) => acks.unackedOf(3)?.has(index))).toEqual([1, 2]);
    subscription.normalAck(3, 1);
    await acks.acknowledge(B, places('3/2'));
    expect(withheld(world)).toEqual([3, 5]);
    expect(acks.unackedOf(4)).toBeUndefined();
  });

  it('up to a message is not sent either (T-15)', async () => {
    const world = loggedWorld({ batches: { 3: 3 } });
    await world.acks.acknowledgeUpTo(A, places('3/1'));
    expect(withheld(world)).toEqual([0, 1, 2]);
    expect([0, 1, 2].filter((index) => world.acks.unackedOf(3)?.has(index))).toEqual([2]);
  });

  it('leaves what its consumer holds as soon as it is recorded, not at the commit (T-19)', async () => {
    const { acks, subscription } = loggedWorld({ batches: { 4: 3 } });
    await acks.acknowledge(A, places(3, '4/1', '4/0'));
    expect(subscription.take()).toEqual(['left 3', 'left 4/0/1']);
  });
});

describe('the end of a transaction', () => {
  it('that commits acknowledges what it acknowledged, and up to where (T-16)', async () => {
    const world = loggedWorld();
    const { acks, subscription } = world;
    await acks.acknowledgeUpTo(A, places(2));
    await acks.acknowledge(A, places(5));
    subscription.take();
    await acks.commit(A);
    expect(subscription.take()).toEqual(['acknowledged 5', 'acknowledged up to 2']);
    expect(withheld(world)).toEqual([]);
  });

  it.each(['commit', 'abort'] as const)('that is not known succeeds: %s (T-16)', async (end) => {
    const { acks, subscription } = loggedWorld();
    await acks[end](A);
    expect(subscription.take()).toEqual([]);
  });

  it('that aborts brings back single messages, but nothing that was acknowledged up to (T-17)', async () => {
    const world = loggedWorld();
    const { acks, subscription } = world;
    await acks.acknowledgeUpTo(A, places(2));
    await acks.acknowledge(A, places(5, 4));
    subscription.take();
    await acks.abort(A);
    expect(subscription.take()).toEqual(['redelivered 4 5']);
    expect(withheld(world)).toEqual([]);
  });

  it.each(['commit', 'abort'] as const)(
    'applies its single messages also while another has acknowledged up to one: %s (T-18)',
    async (end) => {
      const { acks, subscription } = loggedWorld();
      await acks.acknowledge(A, places(5));
      await acks.acknowledgeUpTo(B, places(2));
      subscription.take();
      await acks[end](A);
      expect(subscription.take()).toEqual([end === 'commit' ? 'acknowledged 5' : 'redelivered 5']);
      await acks.commit(B);
      expect(subscription.take()).toEqual(['acknowledged up to 2']);
    },
  );

  it('waits for what is being recorded of it, and lets nothing more in', async () => {
    const { acks, subscription } = loggedWorld();
    await acks.open();
    const recording = acks.acknowledge(A, places(3));
    const ending = acks.commit(A);
    await expect(acks.acknowledge(A, places(4))).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
    await Promise.all([recording, ending]);
    expect(subscription.take()).toEqual(['left 3', 'acknowledged 3']);
  });

  it('that commits and cannot be stored is repeated, and stores all of it then', async () => {
    const { acks, subscription } = loggedWorld();
    await acks.acknowledge(A, places(3, 4));
    subscription.storeFails = true;
    await expect(acks.commit(A)).rejects.toThrow('the disk is full');
    expect(acks.transactions).toEqual([A]);
    subscription.storeFails = false;
    await acks.commit(A);
    const { cursor } = subscription.restarted();
    expect([3, 4].map((position) => cursor.isAcked(position))).toEqual([true, true]);
  });
});

describe('before it is known what was kept', () => {
  it('calls wait and start in their order, and it opens for the first of them (T-20)', async () => {
    const { acks, subscription } = loggedWorld();
    expect(acks.state).toBe('none');
    const calls = [acks.acknowledge(A, places(3)), acks.commit(A), acks.acknowledge(B, places(4)), acks.abort(B)];
    expect(acks.state).toBe('initializing');
    await Promise.all(calls);
    expect(acks.state).toBe('ready');
    expect(subscription.take()).toEqual(['left 3', 'left 4', 'acknowledged 3', 'redelivered 4']);
  });

  it.each(['open', 'replay'] as const)('and cannot be, at %s, everything is refused (T-20)', async (step) => {
    const cause = new Error('unreadable');
    const world = step === 'open' ? unopenable(cause) : loggedWorld({}, { replay: () => Promise.reject(cause) });
    const { acks } = world;
    const refused = { code: 'BROKER_ERROR', retriable: true, message: 'PendingAckHandle not replay error!', cause };
    const waiting = acks.acknowledge(A, places(3));
    await expect(acks.open()).rejects.toMatchObject(refused);
    await expect(waiting).rejects.toMatchObject(refused);
    expect(acks.state).toBe('error');
    for (const call of calls(world)) await expect(call()).rejects.toMatchObject(refused);
  });

  it('and it is closed meanwhile, what waits is refused, and its store is closed (T-20)', async () => {
    let closed = 0;
    const world = loggedWorld({}, { replay: settlePromises, close: async () => void (closed += 1) });
    const refused = { code: 'BROKER_ERROR', retriable: true, message: 'PendingAckHandle have been closed!' };
    const waiting = expect(world.acks.acknowledge(A, places(3))).rejects.toMatchObject(refused);
    await world.acks.close();
    await waiting;
    expect(closed).toBeGreaterThan(0);
    expect(world.acks.state).toBe('closed');
    for (const call of calls(world)) await expect(call()).rejects.toMatchObject(refused);
  });
});

it('closing waits for what is being recorded', async () => {
  const order: string[] = [];
  const appendIndividual = async (): Promise<void> => {
    await settlePromises();
    order.push('recorded');
  };
  const { acks } = loggedWorld({}, { appendIndividual, close: async () => void order.push('closed') });
  await acks.open();
  const recording = acks.acknowledge(A, places(3));
  await acks.close();
  await recording;
  expect(order).toEqual(['recorded', 'closed']);
});

function unopenable(cause: Error): PendingWorld {
  return pendingAcksOf(new TestSubscription('persistent://public/default/orders'), {
    open: (): Promise<PendingAckStore> => Promise.reject(cause),
  });
}

function calls({ acks }: PendingWorld): readonly (() => Promise<void>)[] {
  return [
    () => acks.acknowledge(A, places(3)),
    () => acks.acknowledgeUpTo(A, places(3)),
    () => acks.commit(A),
    () => acks.abort(A),
  ];
}
