// The gate before a run: suspects alone, everybody else together, nobody for ever.
import { FakeClock, memoryAttemptStore } from 'pulsework/testing';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Pass } from '../../../src/runtime/suspects.js';
import { SuspectGate, gateOf } from '../../../src/runtime/suspects.js';

/** Runs on a clock: what started and ended when, in order. */
class Runs {
  readonly clock = new FakeClock(0);
  readonly gate = new SuspectGate();
  readonly log: string[] = [];
  readonly running = new Map<string, boolean>();
  /** Most that ran at once beside a suspect; must stay 0. */
  besideSuspects = 0;
  mostTogether = 0;

  come(key: string, { suspect = false, forMs = 100 } = {}): Pass {
    return this.gate.admit(key, suspect, (pass) => {
      this.running.set(key, suspect);
      this.mostTogether = Math.max(this.mostTogether, this.running.size);
      if ([...this.running.values()].includes(true))
        this.besideSuspects = Math.max(this.besideSuspects, this.running.size - 1);
      this.log.push(`${key} starts at ${this.clock.now()}`);
      this.clock.setTimer(forMs, () => {
        this.running.delete(key);
        pass.leave();
      });
    });
  }
}

describe('the gate for suspects', () => {
  let runs: Runs;
  beforeEach(() => {
    runs = new Runs();
  });

  it('lets ordinary deliveries run together at once', () => {
    runs.come('a');
    runs.come('b');

    expect(runs.log).toEqual(['a starts at 0', 'b starts at 0']);
  });

  it('lets a suspect run at once where nothing runs, and others only after it', async () => {
    runs.come('suspect', { suspect: true });
    runs.come('a');
    runs.come('b');
    expect(runs.gate.alone).toBe('suspect');
    expect(runs.gate.waiting).toBe(2);
    await runs.clock.advanceBy(1_000);

    expect(runs.log).toEqual(['suspect starts at 0', 'a starts at 100', 'b starts at 100']);
    expect(runs.gate.alone).toBeUndefined();
  });

  it('lets a suspect wait until the last of the others has ended', async () => {
    runs.come('short', { forMs: 50 });
    runs.come('long', { forMs: 400 });
    runs.come('suspect', { suspect: true });
    await runs.clock.advanceBy(1_000);

    expect(runs.log.at(-1)).toBe('suspect starts at 400');
  });

  it('lets nobody who comes later pass a suspect that waits', async () => {
    runs.come('long', { forMs: 400 });
    runs.come('suspect', { suspect: true });
    runs.come('later', { forMs: 10 });
    await runs.clock.advanceBy(1_000);

    expect(runs.log).toEqual(['long starts at 0', 'suspect starts at 400', 'later starts at 500']);
  });

  it('lets those who came before the next suspect run before it, together', async () => {
    runs.come('suspect 1', { suspect: true });
    runs.come('a');
    runs.come('b');
    runs.come('suspect 2', { suspect: true });
    runs.come('c');
    await runs.clock.advanceBy(1_000);

    expect(runs.log).toEqual([
      'suspect 1 starts at 0',
      'a starts at 100',
      'b starts at 100',
      'suspect 2 starts at 200',
      'c starts at 300',
    ]);
  });

  it('lets suspects run one by one', async () => {
    for (const key of ['1', '2', '3']) runs.come(key, { suspect: true });
    await runs.clock.advanceBy(1_000);

    expect(runs.log).toEqual(['1 starts at 0', '2 starts at 100', '3 starts at 200']);
  });

  it('a suspect that is withdrawn while it waits holds nobody back', async () => {
    runs.come('long', { forMs: 400 });
    const suspect = runs.come('suspect', { suspect: true });
    runs.come('later');
    suspect.leave();
    await runs.clock.advanceBy(1_000);

    expect(runs.log).toEqual(['long starts at 0', 'later starts at 0']);
  });

  it('leaving twice is leaving once', async () => {
    const a = runs.come('a', { forMs: 300 });
    runs.come('b', { forMs: 300 });
    runs.come('suspect', { suspect: true });
    await runs.clock.advanceBy(300);
    a.leave();
    runs.come('c');

    expect(runs.log).toEqual(['a starts at 0', 'b starts at 0', 'suspect starts at 300']);
  });

  it('takes a run that ends within its start', () => {
    const gate = new SuspectGate();
    gate.admit('suspect', true, (pass) => pass.leave());

    expect(gate.alone).toBeUndefined();
  });

  it('takes waiting runs that end within their start, however many', () => {
    const gate = new SuspectGate();
    const suspect = gate.admit('suspect', true, () => undefined);
    let ended = 0;
    for (let n = 0; n < 20_000; n++) {
      gate.admit(`${n}`, n % 2 === 0, (pass) => {
        ended += 1;
        pass.leave();
      });
    }
    suspect.leave();

    expect(ended).toBe(20_000);
    expect(gate.waiting).toBe(0);
  });

  it('in any mix: suspects alone, everyone once and in the end, ordinary ones not one by one', async () => {
    const come = fc.record({ suspect: fc.boolean(), atMs: fc.nat(500), forMs: fc.nat(200), withdrawn: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(come, { maxLength: 40 }), async (arrivals) => {
        const mix = new Runs();
        const expected = arrivals.map((arrival, n) => ({ ...arrival, key: `${n}` }));
        for (const { key, atMs, suspect, forMs, withdrawn } of expected) {
          mix.clock.setTimer(atMs, () => {
            const pass = mix.come(key, { suspect, forMs });
            if (withdrawn && !mix.running.has(key)) pass.leave();
          });
        }
        await mix.clock.advanceBy(500 + 40 * 200);

        const started = mix.log.map((line) => line.split(' ')[0]);
        expect(mix.besideSuspects).toBe(0);
        expect(new Set(started).size).toBe(started.length);
        expect(expected.filter(({ key, withdrawn }) => !withdrawn && !started.includes(key))).toEqual([]);
        expect(mix.gate.waiting).toBe(0);
        // Without suspects nobody ever waits.
        if (arrivals.every(({ suspect }) => !suspect)) expect(started).toHaveLength(arrivals.length);
      }),
      { seed: 20261130, numRuns: 60 },
    );
  });

  it('is one for all runtimes of the process that share a store', () => {
    const store = memoryAttemptStore();

    expect(gateOf(store)).toBe(gateOf(store));
    expect(gateOf(store)).not.toBe(gateOf(memoryAttemptStore()));
  });
});
