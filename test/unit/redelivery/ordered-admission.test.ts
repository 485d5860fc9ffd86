// Who may be handled now (K-51, K-52), told by hand what happens to the messages.
import { beforeEach, describe, expect, it } from 'vitest';
import type { ReceivedMessage } from '../../../src/core/message.js';
import { OrderedAdmission } from '../../../src/redelivery/ordered-admission.js';
import type { Admission, ReturnReason } from '../../../src/redelivery/ordered-admission.js';
import { TOPIC, message } from './admission-kit.js';

const admitted: Admission = { outcome: 'admitted' };
const withoutGuarantee: Admission = { outcome: 'admitted-without-guarantee' };
const returned = (reason: ReturnReason): Admission => ({ outcome: 'returned', reason });

let gaveBack: number[];
let admission: OrderedAdmission;
beforeEach(() => {
  gaveBack = [];
  admission = new OrderedAdmission({ giveBack: ({ id }) => void gaveBack.push(id.entryId) });
  admission.connected(TOPIC, 1, true);
});

/** They arrive, each an entry of its own. */
function arrive(...entries: readonly number[]): readonly ReceivedMessage[] {
  const messages = entries.map((entryId) => message(entryId));
  for (const one of messages) admission.arrived([one]);
  return messages;
}

/** One entry arrives with these indexes of its batch. */
function arriveBatch(entryId: number, indexes: readonly number[], keys: readonly string[] = []) {
  const messages = indexes.map((batchIndex) => message(entryId, { batchIndex, key: keys[batchIndex] ?? 'a' }));
  admission.arrived(messages);
  return messages;
}

describe('a message is admitted when it is the earliest unresolved one of its key (K-51)', () => {
  it('one after the other, as they are acknowledged', () => {
    const [first, second] = arrive(1, 2);
    expect(admission.acquire(first!)).toEqual(admitted);
    admission.acknowledged(first!.id);
    expect(admission.acquire(second!)).toEqual(admitted);
    expect(gaveBack).toEqual([]);
  });

  it('a later one goes back, and the application discards it', () => {
    const [, second] = arrive(1, 2);
    expect(admission.acquire(second!)).toEqual(returned('earlier-message-unresolved'));
    expect(gaveBack).toEqual([2]);
  });

  it('keys do not wait for each other, nor topics', () => {
    arrive(1);
    const other = message(2, { key: 'b' });
    const elsewhere = message(3, { topic: 'persistent://public/default/other' });
    admission.connected(elsewhere.id.topic, 1, true);
    admission.arrived([other]);
    admission.arrived([elsewhere]);
    expect(admission.acquire(other)).toEqual(admitted);
    expect(admission.acquire(elsewhere)).toEqual(admitted);
  });

  it('by ledger, entry and index of the batch, whatever order they came in', () => {
    const [later] = arrive(7);
    const batch = arriveBatch(5, [0, 1]);
    const nextLedger = message(0, { ledgerId: 2 });
    admission.arrived([nextLedger]);

    expect(admission.acquire(batch[0]!)).toEqual(admitted);
    admission.acknowledged(batch[0]!.id);
    expect(admission.acquire(batch[1]!)).toEqual(admitted);
    admission.acknowledged(batch[1]!.id);
    expect(admission.acquire(later!)).toEqual(admitted);
    expect(admission.acquire(nextLedger)).toEqual(returned('earlier-message-unresolved'));
  });

  it('also one that is earlier than one that failed', () => {
    const [, failed] = arrive(1, 2);
    const [earlier] = arrive(0);
    admission.failed(failed!.id, true);
    expect(admission.acquire(earlier!)).toEqual(admitted);
  });

  it('an id without a batch index acknowledges its whole entry', () => {
    const [first] = arriveBatch(1, [0, 1, 2]);
    const [second] = arrive(2);
    admission.acknowledged({ ...first!.id, batchIndex: -1 });
    expect(admission.acquire(second!)).toEqual(admitted);
  });

  it('what of a batch does not come again was acknowledged elsewhere', () => {
    arriveBatch(1, [0, 1, 2]);
    const again = arriveBatch(1, [1, 2]);
    expect(admission.acquire(again[0]!)).toEqual(admitted);
  });
});

describe('a message is resolved by its acknowledgement only (K-51)', () => {
  it('not by failing: later ones go back until the retry is acknowledged', () => {
    const [first, second, third, fourth] = arrive(1, 2, 3, 4);
    admission.acquire(first!);
    admission.failed(first!.id, true);
    expect(admission.acquire(second!)).toEqual(returned('key-awaiting-retry'));
    const [retry] = arrive(1);
    expect(admission.acquire(third!)).toEqual(returned('earlier-message-unresolved'));
    expect(admission.acquire(retry!)).toEqual(admitted);
    admission.acknowledged(retry!.id);
    expect(admission.acquire(fourth!)).toEqual(returned('earlier-message-unresolved'));
    expect(gaveBack).toEqual([2, 3, 4]);
  });

  it('not by going back: what is here of later ones goes back, too, and comes in its place', () => {
    const [first, second, third] = arrive(1, 2, 3);
    admission.acquire(second!);
    admission.acquire(first!);
    admission.acknowledged(first!.id);
    expect(admission.acquire(third!)).toEqual(returned('earlier-message-unresolved'));
    const [secondAgain, thirdAgain] = arrive(2, 3);
    expect(admission.acquire(secondAgain!)).toEqual(admitted);
    admission.acknowledged(secondAgain!.id);
    expect(admission.acquire(thirdAgain!)).toEqual(admitted);
  });

  it.each([
    ['after an ack timeout, or by id', () => admission.askedBack(message(1).id)],
    ['with the rest of its entry', () => admission.wentBack(message(1).id)],
  ])('not by being asked back %s', (_, leave) => {
    const [first, second] = arrive(1, 2);
    leave();
    expect(admission.acquire(second!).outcome).toBe('returned');
    expect(admission.acquire(first!).outcome).toBe('returned');
    expect(gaveBack).toEqual([2]);
  });
});

describe('asking twice (K-51)', () => {
  it('gives the same answer, and nothing back twice', () => {
    const [first, second] = arrive(1, 2);
    expect([admission.acquire(first!), admission.acquire(first!)]).toEqual([admitted, admitted]);
    expect(admission.acquire(second!)).toEqual(returned('earlier-message-unresolved'));
    admission.acknowledged(first!.id);
    expect(admission.acquire(second!)).toEqual(returned('earlier-message-unresolved'));
    expect(gaveBack).toEqual([2]);
  });

  it('about other messages of an entry that went back says that they did, and gives nothing back', () => {
    arrive(1);
    const [a, b, c] = arriveBatch(2, [0, 1, 2]);
    expect([a!, b!, c!, b!].map((one) => admission.acquire(one).outcome)).toEqual(Array(4).fill('returned'));
    expect(gaveBack).toEqual([2]);
  });

  it('tells an earlier copy from the one that came again', () => {
    const [first, old] = arrive(1, 2);
    admission.acquire(first!);
    admission.acquire(old!);
    const [again] = arrive(2);
    admission.acknowledged(first!.id);
    expect(admission.acquire(old!)).toEqual(returned('earlier-message-unresolved'));
    expect(admission.acquire(again!)).toEqual(admitted);
  });

  it('about a message that came again while it is handled: it is not handled twice at once', () => {
    const [first] = arrive(1);
    admission.acquire(first!);
    const [again] = arrive(1);
    expect(admission.acquire(again!)).toEqual(returned('earlier-message-unresolved'));
    expect(admission.acquire(first!)).toEqual(admitted);
  });

  it('about one that came again after its time to be acknowledged was over: it is handled again', () => {
    const [first] = arrive(1);
    admission.acquire(first!);
    admission.askedBack(first!.id);
    const [again] = arrive(1);
    expect(admission.acquire(again!)).toEqual(admitted);
  });

  it('about one that is acknowledged says to discard it', () => {
    const [first] = arrive(1);
    admission.acknowledged(first!.id);
    expect(admission.acquire(first!).outcome).toBe('returned');
    expect(gaveBack).toEqual([]);
  });

  it('takes a copy of the object for the newest arrival', () => {
    const [first, second] = arrive(1, 2);
    expect(admission.acquire({ ...second! })).toEqual(returned('earlier-message-unresolved'));
    expect(admission.acquire({ ...first! })).toEqual(admitted);
  });
});

describe('what goes back with an entry', () => {
  it('all of it that is not handled, whatever its key; what is handled is handled to its end', () => {
    arrive(1);
    const [handled, second, other] = arriveBatch(2, [0, 1, 2], ['b', 'a', 'c']);
    expect(admission.acquire(handled!)).toEqual(admitted);
    expect(admission.acquire(second!)).toEqual(returned('earlier-message-unresolved'));
    expect(admission.acquire(other!).outcome).toBe('returned');
    expect(admission.acquire(handled!)).toEqual(admitted);
    const [handledAgain] = arriveBatch(2, [0, 1, 2], ['b', 'a', 'c']);
    expect(admission.acquire(handledAgain!).outcome).toBe('returned');
    expect(gaveBack).toEqual([2]);
  });

  it('nothing where another message of the entry failed: the entry comes again with the retry, and not before', () => {
    const [a, b] = arriveBatch(1, [0, 1]);
    admission.acquire(a!);
    admission.failed(a!.id, true);
    expect(admission.acquire(b!)).toEqual(returned('key-awaiting-retry'));
    expect(gaveBack).toEqual([]);
    const [aAgain, bAgain] = arriveBatch(1, [0, 1]);
    expect(admission.acquire(aAgain!)).toEqual(admitted);
    admission.acknowledged(aAgain!.id);
    expect(admission.acquire(bAgain!)).toEqual(admitted);
  });
});

describe('the connection', () => {
  it('copies from one that was replaced are superseded, always and before all else (K-52)', () => {
    const [first, second] = arrive(1, 2);
    admission.acquire(first!);
    admission.connected(TOPIC, 2, true);
    const again = message(1, { connection: 2 });
    admission.arrived([again]);

    expect(admission.acquire(first!)).toEqual(returned('superseded-connection'));
    expect(admission.acquire(second!)).toEqual(returned('superseded-connection'));
    expect(admission.acquire(again)).toEqual(admitted);
    expect(gaveBack).toEqual([]);
  });

  it('so are they while there is none, and when the new one does not keep the order (K-52)', () => {
    const [first] = arrive(1);
    admission.connectionLost(TOPIC);
    expect(admission.acquire(first!)).toEqual(returned('superseded-connection'));
    admission.connected(TOPIC, 2, false);
    expect(admission.acquire(first!)).toEqual(returned('superseded-connection'));
  });

  it('what comes over one that does not keep the order is admitted without a guarantee, and not tracked (K-52)', () => {
    admission.connected(TOPIC, 2, false);
    const [first, second] = [message(1, { connection: 2 }), message(2, { connection: 2 })];
    admission.arrived([first]);
    admission.arrived([second]);
    expect([admission.acquire(second), admission.acquire(first)]).toEqual([withoutGuarantee, withoutGuarantee]);
    expect(admission.isEmpty).toBe(true);
  });

  it('what came late over the old one is not tracked', () => {
    admission.connected(TOPIC, 2, true);
    arrive(1);
    expect(admission.isEmpty).toBe(true);
  });

  it('told twice of the same one, it keeps what it knows', () => {
    const [, second] = arrive(1, 2);
    admission.connected(TOPIC, 1, true);
    expect(admission.acquire(second!)).toEqual(returned('earlier-message-unresolved'));
  });
});

it('a message without a key has no order: nothing is promised for it (K-43)', () => {
  const keyless = message(1, { key: undefined });
  admission.arrived([keyless]);
  expect(admission.acquire(keyless)).toEqual(withoutGuarantee);
  expect(admission.isEmpty).toBe(true);
});

describe('what is known of a key is forgotten when no live copy of it remains (K-51)', () => {
  it('not before: while a later one lies in a queue of the application it waits for the one that was asked back', () => {
    const [first, second] = arrive(1, 2);
    admission.askedBack(first!.id);
    expect(admission.size).toBe(2);
    expect(admission.acquire(second!)).toEqual(returned('key-awaiting-retry'));
    expect(admission.isEmpty).toBe(true);
  });

  it('nor while one that failed is waited for: others may be on their way from before', () => {
    const [first] = arrive(1);
    admission.failed(first!.id, true);
    const [onItsWay] = arrive(2);
    expect(admission.acquire(onItsWay!)).toEqual(returned('key-awaiting-retry'));
    const [retry] = arrive(1);
    admission.acknowledged(retry!.id);
    expect(admission.isEmpty).toBe(true);
  });

  it('when all is acknowledged nothing is left', () => {
    for (let entry = 0; entry < 100; entry++) arriveBatch(entry, [0, 1, 2], ['a', 'b', `k${entry}`]);
    for (let entry = 0; entry < 100; entry++) admission.acknowledged(message(entry).id);
    expect(admission.isEmpty).toBe(true);
  });
});

describe('what the broker sends again after it was told what failed waits for that no longer (K-46)', () => {
  it('the failed one was acknowledged by another consumer', () => {
    const [first, second, third] = arrive(1, 2, 3);
    admission.failed(first!.id, true);
    admission.acquire(second!);
    const [secondAgain] = arrive(2);
    expect(admission.acquire(secondAgain!)).toEqual(admitted);
    expect(admission.acquire(third!)).toEqual(returned('earlier-message-unresolved'));
  });

  it('not when it was sent before the broker was told', () => {
    const [first, second, third] = arrive(1, 2, 3);
    admission.acquire(first!);
    admission.acquire(second!);
    admission.failed(first!.id, true);
    const [secondAgain] = arrive(2);
    expect(admission.acquire(secondAgain!)).toEqual(returned('key-awaiting-retry'));
    expect(admission.acquire(third!)).toEqual(returned('key-awaiting-retry'));
  });

  it('not when the broker was not told of the order', () => {
    const [first, second, third] = arrive(1, 2, 3);
    admission.failed(first!.id, false);
    admission.acquire(second!);
    const [secondAgain] = arrive(2);
    expect(admission.acquire(secondAgain!)).toEqual(returned('key-awaiting-retry'));
    expect(admission.acquire(third!)).toEqual(returned('key-awaiting-retry'));
  });

  it('but when it was asked for before: it would have come first', () => {
    const [first, second, third] = arrive(1, 2, 3);
    admission.failed(first!.id, false);
    admission.askedBack(first!.id);
    admission.acquire(second!);
    const [secondAgain] = arrive(2);
    expect(admission.acquire(secondAgain!)).toEqual(admitted);
    expect(admission.acquire(third!)).toEqual(returned('earlier-message-unresolved'));
  });

  it('not for one before it that went back after it', () => {
    const [first, second, third, fourth] = arrive(1, 2, 3, 4);
    admission.acquire(first!);
    admission.acquire(third!);
    admission.acquire(second!);
    const [thirdAgain] = arrive(3);
    admission.acknowledged(first!.id);
    expect(admission.acquire(thirdAgain!)).toEqual(returned('earlier-message-unresolved'));
    expect(admission.acquire(fourth!)).toEqual(returned('earlier-message-unresolved'));
  });
});
