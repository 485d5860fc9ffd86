// The consistent hash ring by which Key_Shared gives each key to a consumer (K-03, K-05). Every number here is part of
// the protocol's behaviour: the same names must own the same keys as on a Pulsar broker.
import { murmur3 } from '../core/key-hash.js';
import { firstIndex } from './bisect.js';
import type { KeySelector } from './key-selector.js';

const POINTS_PER_CONSUMER = 100;
/** Slots run from 1 to 65,535: 0 means "not set". */
const SLOTS = 65_535;

/** The slot of a key hash. */
export function slotOf(keyHash: number): number {
  return (keyHash % SLOTS) + 1;
}

export class HashRing<Owner extends { readonly name: string }> implements KeySelector<Owner> {
  /** Several owners where points collide: the first one added has the point, the others wait behind it. */
  readonly #points = new Map<number, Owner[]>();
  /** Made when it is asked for: consumers often come and go together. */
  #sorted: readonly number[] | undefined;
  /** Who uses which index of a name: the same name twice makes different points. */
  readonly #names = new Map<string, (Owner | undefined)[]>();

  slotOf(keyHash: number): number {
    return slotOf(keyHash);
  }

  add(owner: Owner): void {
    const namesakes = this.#names.get(owner.name) ?? [];
    const free = namesakes.indexOf(undefined);
    const index = free < 0 ? namesakes.length : free;
    namesakes[index] = owner;
    this.#names.set(owner.name, namesakes);
    for (const point of pointsOf(owner.name, index)) {
      const owners = this.#points.get(point);
      if (owners === undefined) this.#points.set(point, [owner]);
      else owners.push(owner);
    }
    this.#sorted = undefined;
  }

  remove(owner: Owner): void {
    const namesakes = this.#names.get(owner.name) ?? [];
    const index = namesakes.indexOf(owner);
    if (index < 0) return;
    namesakes[index] = undefined;
    if (namesakes.every((namesake) => namesake === undefined)) this.#names.delete(owner.name);
    for (const point of pointsOf(owner.name, index)) {
      const owners = this.#points.get(point) ?? [];
      const at = owners.indexOf(owner);
      if (at >= 0) owners.splice(at, 1);
      if (owners.length === 0) this.#points.delete(point);
    }
    this.#sorted = undefined;
  }

  /** The owner of a slot: that of the next point at or after it, round the end. */
  select(slot: number): Owner | undefined {
    const sorted = (this.#sorted ??= [...this.#points.keys()].sort((a, b) => a - b));
    const point = sorted[firstIndex(sorted.length, (i) => (sorted[i] ?? Infinity) >= slot)] ?? sorted[0];
    return point === undefined ? undefined : this.#points.get(point)?.[0];
  }
}

function* pointsOf(name: string, index: number): Generator<number> {
  for (let i = 0; i < POINTS_PER_CONSUMER; i++) yield slotOf(murmur3(`${name}\0${index}\0${i}`));
}
