// That the ordering model sees what it is to see: each rule of its observer violated on purpose, and programs made small.
import { beforeEach, describe, expect, it } from 'vitest';
import { Entry } from '../../../src/broker/entry.js';
import { programOf } from '../../support/ordering-model/generator.js';
import { Observer } from '../../support/ordering-model/observer.js';
import type { Ending, Program } from '../../support/ordering-model/program.js';
import { MODES, isCalm } from '../../support/ordering-model/program.js';
import { shrunk } from '../../support/ordering-model/shrink.js';

const TOPIC = 'persistent://public/default/accounts';
const DEAD_LETTERS = `${TOPIC}-s-DLQ`;
const SUCCESS: Ending = { how: 'success', delayMs: 0, runMs: 0 };
const RETRY: Ending = { how: 'retry', delayMs: 0, runMs: 0 };

let observer: Observer;
beforeEach(() => {
  observer = new Observer({ source: TOPIC, deadLetters: DEAD_LETTERS, maxDeliveries: 2, isCalm: true, nowMs: () => 0 });
});

function store(topic: string, ...numbers: readonly number[]): void {
  const messages = numbers.map((number) => ({ payload: Buffer.from(String(number)), properties: {} }));
  const entry = new Entry(messages, { publishTimeMs: 0, bytes: 0 }, { producerName: 'p', sequenceId: 0 });
  observer.append({ topic, ledgerId: 1, entryId: numbers[0]! }, entry);
}

function publish(key: string, batch = 1): void {
  store(TOPIC, ...Array.from({ length: batch }, () => observer.announce({ key, endings: [] })));
}

function acknowledge(entryId: number, batchIndex = -1): void {
  observer.acknowledge({ topic: TOPIC, subscription: 's', ledgerId: 1, entryId, batchIndex, cumulative: false });
}

function start(number: number, { process = 1, attempt = 1, epoch = 0 } = {}) {
  return observer.started({ process, number, attempt, epoch });
}

function run(number: number, ending: Ending, attempt = 1): void {
  observer.ended(start(number, { attempt }), ending, attempt);
}

function rules(): readonly string[] {
  return observer.violations.map(({ rule }) => rule);
}

describe('the observer of the ordering model', () => {
  it('finds nothing wrong where each message waits for the one before', () => {
    publish('A', 2);
    run(0, SUCCESS);
    acknowledge(0, 0);
    run(1, RETRY);
    run(1, SUCCESS, 2);
    acknowledge(0);
    observer.checkEnd();
    expect(rules()).toEqual([]);
  });

  it('sees a message that passes an earlier one of its key, not of another one', () => {
    publish('A');
    publish('B');
    publish('A');
    run(1, SUCCESS);
    expect(rules()).toEqual([]);
    run(2, SUCCESS);
    expect(rules()).toEqual(['order']);
  });

  it('sees two runs of a key at a time, unless the connection of the other process was lost since', () => {
    publish('A');
    start(0);
    start(0, { process: 2, epoch: 1 });
    expect(rules()).toEqual([]);
    start(0, { process: 3, epoch: 1 });
    expect(rules()).toEqual(['overlap']);
  });

  it('sees what is acknowledged without having been handled, and a dead letter without a reason', () => {
    publish('A');
    publish('B');
    acknowledge(0);
    store(DEAD_LETTERS, 1);
    expect(rules()).toEqual(['loss', 'loss']);
  });

  it('sees an attempt that is counted without a failure, and one that is not counted', () => {
    publish('A');
    run(0, RETRY, 2);
    run(0, SUCCESS, 1);
    expect(rules()).toEqual(['attempt', 'attempt']);
  });

  it('sees a message that is handled twice, and one that is left', () => {
    publish('A');
    publish('B');
    run(0, SUCCESS);
    run(0, SUCCESS);
    acknowledge(0);
    observer.checkEnd();
    expect(rules()).toEqual(['once', 'wedge']);
  });
});

describe('a random interleaving', () => {
  it('is the same for the same seed, with each kind of step in some', () => {
    expect(programOf(7, 'broker')).toEqual(programOf(7, 'broker'));
    const programs = Array.from({ length: 300 }, (_, seed) => programOf(seed, MODES[seed % MODES.length]!));
    expect(new Set(programs.flatMap(({ steps }) => steps.map((step) => step.do))).size).toBe(13);
    const calm = programs.filter(isCalm).length;
    expect([calm > 100, calm < 250]).toEqual([true, true]);
  });

  it('is made as small as it still violates its rule', async () => {
    const program = programOf(3, 'broker');
    const violates = async ({ steps }: Program): Promise<boolean> =>
      steps.some((step) => step.do === 'publish') && steps.some((step) => step.do === 'pass' && step.ms > 0);
    expect(await violates(program)).toBe(true);
    const { setting, steps } = await shrunk(program, violates, 2_000);
    expect(setting).toMatchObject({ mode: 'broker', partitions: 1, maxProcesses: 1, latencyMs: 0 });
    expect(steps.toSorted((a, b) => a.do.localeCompare(b.do))).toEqual([
      { do: 'pass', ms: 1 },
      { do: 'publish', jobs: [{ key: expect.any(String) as string, endings: [] }] },
    ]);
  });
});
