import { describe, expect, it } from 'vitest';
import { chooseActive } from '../../../src/broker/active-choice.js';
import { HashRing, slotOf } from '../../../src/broker/hash-ring.js';
import { partitionFor } from '../../../src/broker/routing.js';
import { javaStringHash, murmur3 } from '../../../src/core/key-hash.js';
import { NO_PROPERTIES } from '../../../src/core/properties.js';

describe('K-02: the key hash is Murmur3 with seed 0, cut to 31 bits', () => {
  it.each([
    ['k1', 2110152746],
    ['k2', 1479966664],
    ['key1', 462881061],
    ['key2', 1936800180],
    ['key01', 39696932],
    ['key02', 751761803],
    ['', 0],
    ['A', 1423767502],
    ['B', 1285974666],
    ['C', 1780285067],
    ['order-42', 1259446670],
    ['привет', 993413998],
    ['abc', 870159354],
    ['abcd', 1139631978],
  ])('of %j', (key, hash) => {
    expect(murmur3(key)).toBe(hash);
  });

  it('is the same for a text and for its bytes', () => {
    const long = 'ключ'.repeat(1000);
    expect(murmur3(long)).toBe(murmur3(new TextEncoder().encode(long)));
  });
});

describe('K-03: slots', () => {
  it('run from 1 to 65,535: 0 would mean no slot', () => {
    expect([0, 65_534, 65_535, 0x7fffffff].map(slotOf)).toEqual([1, 65_535, 1, (0x7fffffff % 65_535) + 1]);
  });
});

describe('K-04: slots of the consistent hash ring', () => {
  it.each([
    ['A', 19628],
    ['B', 46897],
    ['C', 26793],
    ['k1', 56817],
    ['k2', 55295],
    ['key1', 7357],
    ['key2', 44326],
    ['key-107', 52221],
    ['key-411', 52221],
    ['key-12', 25709],
    ['key-540', 25709],
  ])('of %j', (key, slot) => {
    expect(slotOf(murmur3(key))).toBe(slot);
  });
});

describe('K-05: who owns a key', () => {
  const owners = (names: readonly string[], keys: readonly string[]): string => {
    const ring = new HashRing();
    for (const name of names) ring.add({ name });
    return keys.map((key) => (ring.select(slotOf(murmur3(key))) as { name: string }).name).join(' ');
  };

  it('with two consumers', () => {
    const keys = ['A', 'C', 'key1', 'key02', 'B', 'k1', 'k2', 'key2', 'key01'];
    expect(owners(['c1', 'c2'], keys)).toBe('c2 c1 c1 c1 c2 c2 c2 c2 c2');
  });

  it('moves only to the third consumer when it joins', () => {
    const keys = ['A', 'C', 'k1', 'key2', 'key1', 'key02', 'B', 'k2', 'key01'];
    expect(owners(['c1', 'c2', 'c3'], keys)).toBe('c3 c3 c3 c3 c1 c1 c2 c2 c2');
  });

  it('is what it was before, once a consumer that joined has left', () => {
    const ring = new HashRing<{ name: string }>();
    const [one, two, three] = [{ name: 'c1' }, { name: 'c2' }, { name: 'c1' }];
    const slots = Array.from({ length: 2_000 }, (_, i) => slotOf(murmur3(`key-${i}`)));
    ring.add(one);
    ring.add(two);
    const before = slots.map((slot) => ring.select(slot));
    ring.add(three);
    ring.remove(three);
    expect(slots.map((slot) => ring.select(slot))).toEqual(before);
  });

  it('gives two consumers of one name their own points', () => {
    const ring = new HashRing<{ name: string }>();
    const [one, two] = [{ name: 'c' }, { name: 'c' }];
    ring.add(one);
    ring.add(two);
    const found = new Set(Array.from({ length: 200 }, (_, i) => ring.select(slotOf(murmur3(`key-${i}`)))));
    expect(found.size).toBe(2);
  });

  it('owns nothing without consumers', () => {
    expect(new HashRing().select(1)).toBeUndefined();
  });
});

describe('S-02: the active Failover consumer', () => {
  const active = (topic: string, ...names: string[]): string | undefined =>
    chooseActive(
      topic,
      names.map((name) => ({ name, priority: 0 })),
    )?.name;

  it.each([
    ['persistent://public/default/t1', ['a', 'b'], 'a'],
    ['persistent://public/default/my-topic', ['a', 'b'], 'a'],
    ['persistent://public/default/my-topic', ['a', 'b', 'c'], 'c'],
    ['persistent://public/default/orders', ['consumer-1', 'consumer-2'], 'consumer-2'],
  ])('of %s is by a hash ring over the topic name', (topic, names, chosen) => {
    expect(active(topic, ...names)).toBe(chosen);
  });

  it('of a partition is by its number over the names in order', () => {
    const of = (partition: number): string | undefined => active(`persistent://p/d/t-partition-${partition}`, 'b', 'a');
    expect([of(0), of(1), of(2)]).toEqual(['a', 'b', 'a']);
  });

  it('has the lowest priority number', () => {
    const consumers = [
      { name: 'a', priority: 1 },
      { name: 'b', priority: 0 },
    ];
    expect(chooseActive('persistent://public/default/t-partition-1', consumers)?.name).toBe('b');
  });

  it('is nobody when there is none', () => {
    expect(active('persistent://public/default/t1')).toBeUndefined();
  });
});

describe('routing to partitions', () => {
  const message = (key?: string | Uint8Array) => ({ payload: null, properties: NO_PROPERTIES, key });

  it.each([
    ['a', 97],
    ['abc', 96354],
    ['key-1', 101943363],
  ])('hashes %j as Java hashes a String', (key, hash) => {
    expect(javaStringHash(key)).toBe(hash);
  });

  it('hashes the base64 text of a key in bytes', () => {
    const bytes = new Uint8Array([0, 1, 250]);
    expect(partitionFor(message(bytes), 1000, 0)).toBe(javaStringHash('AAH6') % 1000);
  });

  it('takes the partitions in turn without a key', () => {
    expect([0, 1, 2, 3].map((turn) => partitionFor(message(), 3, turn))).toEqual([0, 1, 2, 0]);
  });

  it('counts an empty key as a key', () => {
    expect([0, 1, 2].map((turn) => partitionFor(message(''), 3, turn))).toEqual([0, 0, 0]);
  });
});
