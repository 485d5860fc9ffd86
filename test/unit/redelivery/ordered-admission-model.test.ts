// Random programs on a plain broker that keeps the order of keys that failed, with commands and messages under way in both
// directions, and an application with a queue for each key: nothing is admitted before all earlier of its key is
// acknowledged, and in the end everything is.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ReceivedMessage } from '../../../src/core/message.js';
import { OrderedAdmission } from '../../../src/redelivery/ordered-admission.js';
import { TOPIC, message } from './admission-kit.js';

interface Entry {
  readonly entryId: number;
  readonly key: string;
  /** Batch indexes that are not acknowledged; -1 for an entry with one message. */
  readonly open: Set<number>;
  isPending: boolean;
  isRetrying: boolean;
}
type Step = (typeof STEPS)[number];
interface Command {
  readonly acks?: number;
  readonly run: () => void;
}
const STEPS = ['send', 'arrive', 'command', 'ask', 'acknowledge', 'fail', 'retry', 'skip', 'reconnect'] as const;
const KEYS = ['a', 'b'] as const;

class World {
  readonly entries: readonly Entry[];
  readonly admission: OrderedAdmission;
  admitted = 0;
  #connection = 0;
  #messages: ReceivedMessage[][] = [];
  #commands: Command[] = [];
  readonly #queues = new Map<string, ReceivedMessage[]>(KEYS.map((key) => [key, []]));
  readonly #handled = new Map<string, ReceivedMessage>();
  readonly #delays = new Set<Entry>();

  constructor(shape: readonly { readonly key: string; readonly size: number }[]) {
    this.entries = shape.map(({ key, size }, entryId) => {
      const open = new Set(size === 0 ? [-1] : Array.from({ length: size }, (_, index) => index));
      return { entryId, key, open, isPending: false, isRetrying: false };
    });
    this.admission = new OrderedAdmission({
      giveBack: ({ id }) => {
        const entry = this.#entry(id.entryId);
        this.#commands.push({ run: () => (entry.isPending = false) });
      },
    });
    this.reconnect();
  }

  step(step: Step, key: string): void {
    this[step](key);
  }

  /** The broker sends the first entry that may be sent: nothing strictly behind one of its key that failed (K-24). */
  send(): void {
    const next = this.entries.find((entry) => entry.open.size > 0 && !entry.isPending && !this.#isWithheld(entry));
    if (next === undefined) return;
    next.isPending = true;
    this.#messages.push(
      [...next.open].map((batchIndex) =>
        message(next.entryId, { batchIndex, key: next.key, connection: this.#connection }),
      ),
    );
  }

  arrive(): void {
    const all = this.#messages.shift() ?? [];
    const left = all.filter(({ id }) => this.#isOpen(id.entryId, id.batchIndex));
    this.admission.arrived(left);
    for (const one of left) this.#queues.get(String(one.key))!.push(one);
  }

  command(): void {
    this.#commands.shift()?.run();
  }

  /** The application takes the next message of the key, unless it handles one. */
  ask(key: string): void {
    const next = this.#handled.has(key) ? undefined : this.#queues.get(key)!.shift();
    if (next === undefined) return;
    const { outcome } = this.admission.acquire(next);
    expect(outcome).not.toBe('admitted-without-guarantee');
    if (outcome !== 'admitted') return;
    this.admitted += 1;
    this.#handled.set(key, next);
    const { entryId, batchIndex } = next.id;
    const earlier = this.entries.filter((entry) => entry.key === key && entry.entryId <= entryId);
    const unresolved = earlier.flatMap((entry) =>
      [...entry.open]
        .filter((index) => (entry.entryId < entryId || index < batchIndex) && this.#isOpen(entry.entryId, index))
        .map((index) => `${entry.entryId}:${index}`),
    );
    expect(unresolved, `earlier than ${entryId}:${batchIndex}`).toEqual([]);
  }

  acknowledge(key: string): void {
    const done = this.#handled.get(key);
    this.#handled.delete(key);
    if (done === undefined) return;
    const { entryId, batchIndex } = done.id;
    const acks = entryId * 10 + batchIndex;
    this.#commands.push({ acks, run: () => this.#acknowledged(this.#entry(entryId), batchIndex) });
    this.admission.acknowledged(done.id);
  }

  fail(key: string): void {
    const done = this.#handled.get(key);
    this.#handled.delete(key);
    if (done === undefined || done.connection !== this.#connection) return;
    const entry = this.#entry(done.id.entryId);
    this.admission.failed(done.id, true);
    // A position that is not pending is skipped, silently (K-49).
    this.#commands.push({ run: () => (entry.isRetrying ||= entry.isPending && entry.open.size > 0) });
    this.#delays.add(entry);
  }

  retry(): void {
    const [entry] = this.#delays;
    if (entry === undefined) return;
    this.#delays.delete(entry);
    this.#commands.push({ run: () => (entry.isPending = false) });
    this.admission.askedBack({ ...message(entry.entryId).id });
  }

  /** Somebody else resolves the first entry of the key. */
  skip(key: string): void {
    const first = this.entries.find((entry) => entry.key === key && entry.open.size > 0);
    for (const index of first?.open ?? []) this.#acknowledged(first!, index);
  }

  /** What is under way is lost, and the broker, whose only consumer it was, begins anew. */
  reconnect(): void {
    this.#connection += 1;
    this.#messages = [];
    this.#commands = [];
    this.#delays.clear();
    for (const entry of this.entries) Object.assign(entry, { isPending: false, isRetrying: false });
    this.admission.connectionLost(TOPIC);
    this.admission.connected(TOPIC, this.#connection, true);
  }

  #isWithheld({ entryId, key }: Entry): boolean {
    return this.entries.some((entry) => entry.isRetrying && entry.key === key && entry.entryId < entryId);
  }

  #isOpen(entryId: number, batchIndex: number): boolean {
    const isAcknowledged = this.#commands.some(({ acks }) => acks === entryId * 10 + batchIndex);
    return this.#entry(entryId).open.has(batchIndex) && !isAcknowledged;
  }

  #acknowledged(entry: Entry, batchIndex: number): void {
    entry.open.delete(batchIndex);
    if (entry.open.size === 0) Object.assign(entry, { isPending: false, isRetrying: false });
  }

  #entry(entryId: number): Entry {
    return this.entries[entryId] as Entry;
  }
}

const shape = fc.array(fc.record({ key: fc.constantFrom(...KEYS), size: fc.constantFrom(0, 0, 2, 3) }), {
  minLength: 1,
  maxLength: 8,
});
const program = fc.array(
  fc.tuple(fc.constantFrom(...STEPS, 'send', 'arrive', 'command', 'ask'), fc.constantFrom(...KEYS)),
  {
    maxLength: 120,
  },
);

it('admits nothing before all earlier of its key is acknowledged, and everything in the end (K-51)', () => {
  let admitted = 0;
  fc.assert(
    fc.property(shape, program, (entries, steps) => {
      const world = new World(entries);
      for (const [step, key] of steps) world.step(step, key);
      const everything: readonly Step[] = ['send', 'arrive', 'ask', 'acknowledge', 'retry', 'command', 'command'];
      for (let round = 0; round < 400; round++)
        for (const key of KEYS) for (const step of everything) world.step(step, key);

      expect(world.entries.filter(({ open }) => open.size > 0)).toEqual([]);
      if (!steps.some(([step]) => step === 'skip')) expect(world.admission.isEmpty).toBe(true);
      admitted += world.admitted;
    }),
    { numRuns: 1_000, seed: 493 },
  );
  expect(admitted).toBeGreaterThan(5_000);
});
