// Two workers, one workflow, and a network that parts one of them from the store while its step runs: the other one takes over, and
// then the first comes back. What it still writes is under an older epoch, and no store may take it.
import type { Clock } from 'pulsework';
import { Runtime, consoleLogger, seconds } from 'pulsework';
import type { EmbeddedTransport } from 'pulsework/embedded';
import { EmbeddedBroker, embedded } from 'pulsework/embedded';
import { FakeClock, settlePromises } from 'pulsework/testing';
import type { JournalEntry, WorkflowKey, WorkflowRecord, WorkflowStore, WorkflowWrite } from 'pulsework/workflow';
import { Workflows, defineWorkflow } from 'pulsework/workflow';
import { z } from 'zod';
import { seeded } from '../seeded.js';
import { StandingClock } from './standing-clock.js';

/**
 * `fails`: its calls fail, at once. The others begin with the write of what the step brought, which all its checks have passed.
 * `held`: it and what follows is on its way, and arrives when the worker is back. `stands`: the process stands still in that
 * moment, and its clock with it, so that it believes afterwards that no time has passed.
 */
export type Partition = 'fails' | 'held' | 'stands';

/** When the first worker is back: the other one runs the step by then, or has taken over and not written a word yet. */
export type ComesBack = 'while the other runs' | 'before the other writes';

/** A write that came to the store. */
export interface SeenWrite {
  readonly worker: string;
  readonly epoch: number;
  /** That had been given out until then. */
  readonly newestEpoch: number;
  readonly isAccepted: boolean;
}

export interface PartitionReport {
  readonly record: WorkflowRecord | undefined;
  readonly journal: readonly JournalEntry[];
  readonly writes: readonly SeenWrite[];
  /** What steps did, in order. */
  readonly effects: readonly string[];
}

/** Longer than a lease, a scan and both runs of the step. */
const LIMIT_MS = seconds(300);
/** It ends while the other one has not taken over yet. */
const FIRST_RUN_MS = seconds(8);
/** The first worker is back in the middle of it. */
const SECOND_RUN_MS = seconds(40);
const JOB = { name: 'job', id: '1' };

/** @param newStore called for each worker: of one place, by connections of their own */
export async function partWorkers(
  partition: Partition,
  comesBack: ComesBack,
  newStore: () => WorkflowStore,
): Promise<PartitionReport> {
  const town = new Town(newStore);
  const one = await town.worker('one', FIRST_RUN_MS);
  void one.workflows.start('job', { id: JOB.id, input: null });
  await town.until(() => town.effects.includes('one begins'));
  await town.clock.advanceBy(seconds(2));
  one.part(partition);
  const beforeWrite = comesBack === 'before the other writes' ? () => one.comeBack() : undefined;
  const two = await town.worker('two', SECOND_RUN_MS, beforeWrite);
  await town.until(() => town.effects.includes('two begins'));
  await town.clock.advanceBy(seconds(4));
  one.comeBack();
  await town.until(async () => (await two.store.get(JOB))?.status === 'completed');
  // Whatever the first one still has to say.
  await town.clock.advanceBy(seconds(60));
  const snapshot = await two.store.read(JOB);
  await town.close(one, two);
  return { record: snapshot?.record, journal: snapshot?.journal ?? [], writes: town.writes, effects: town.effects };
}

interface Worker {
  readonly runtime: Runtime;
  readonly workflows: Workflows;
  /** Not parted from it. */
  readonly store: WorkflowStore;
  part(partition: Partition): void;
  comeBack(): void;
}

class Town {
  readonly clock = new FakeClock();
  readonly effects: string[] = [];
  readonly writes: SeenWrite[] = [];
  readonly #broker = new EmbeddedBroker({ clock: this.clock });
  readonly #newStore: () => WorkflowStore;
  /** Calls that the store has not answered. */
  readonly #calls = new Set<Promise<unknown>>();
  #newestEpoch = 0;

  constructor(newStore: () => WorkflowStore) {
    this.#newStore = newStore;
  }

  /** @param beforeWrite called before its first write; what it brings to the store comes before that write */
  async worker(name: string, stepMs: number, beforeWrite?: () => void): Promise<Worker> {
    const clock = new StandingClock(this.clock);
    const store = this.#newStore();
    const line = new Line(
      () => clock.stand(),
      async () => {
        beforeWrite?.();
        await settlePromises();
        await Promise.allSettled(this.#calls);
      },
    );
    const reached = this.#watched(name, store, line);
    const transport = withClock(embedded({ broker: this.#broker }), clock);
    const random = seeded(name.charCodeAt(0));
    const logger = consoleLogger({ level: 'silent' });
    const runtime = await this.#awaited(Runtime.start({ transport, handlers: [], logger, random }));
    const definitions = [this.#job(name, stepMs, clock)];
    const workflows = await this.#awaited(Workflows.start({ runtime, store: reached, definitions }));
    return {
      runtime,
      workflows,
      store,
      part: (partition) => line.part(partition),
      comeBack: () => {
        clock.goOn();
        line.comeBack();
      },
    };
  }

  /** Time goes on only while the store owes nobody an answer: its own I/O takes no virtual time. */
  until(condition: () => boolean | Promise<boolean>): Promise<void> {
    const holds = async (): Promise<boolean> => {
      while (this.#calls.size > 0) await Promise.allSettled(this.#calls);
      return condition();
    };
    return this.clock.advanceUntil(holds, { stepMs: 500, maxMs: LIMIT_MS });
  }

  async close(...workers: readonly Worker[]): Promise<void> {
    for (const { runtime } of workers) await this.#awaited(runtime.close());
  }

  #job(worker: string, stepMs: number, clock: Clock) {
    return defineWorkflow({
      name: JOB.name,
      version: 1,
      input: z.null(),
      run: async (flow) => {
        const by = await flow.step('long', () => {
          this.effects.push(`${worker} begins`);
          return new Promise<string>((resolve) => {
            clock.setTimer(stepMs, () => {
              this.effects.push(`${worker} ends`);
              resolve(worker);
            });
          });
        });
        await flow.step('after', () => void this.effects.push(`after ${by} by ${worker}`));
        return by;
      },
    });
  }

  #watched(worker: string, store: WorkflowStore, line: Line): WorkflowStore {
    return new Proxy(store, {
      get: (target, method) => {
        const value: unknown = Reflect.get(target, method);
        if (typeof value !== 'function') return value;
        const call = value as (...args: unknown[]) => Promise<unknown>;
        return (...args: unknown[]) =>
          line.send(method === 'write', () =>
            this.#counted(this.#seen(worker, method, args, () => call.apply(target, args))),
          );
      },
    });
  }

  async #counted<T>(call: Promise<T>): Promise<T> {
    this.#calls.add(call);
    try {
      return await call;
    } finally {
      this.#calls.delete(call);
    }
  }

  async #seen(
    worker: string,
    method: string | symbol,
    args: unknown[],
    call: () => Promise<unknown>,
  ): Promise<unknown> {
    if (method === 'write') {
      const { epoch } = args[1] as WorkflowWrite;
      const about = { worker, epoch, newestEpoch: this.#newestEpoch };
      return call().then(
        (answer) => (this.writes.push({ ...about, isAccepted: true }), answer),
        (error: unknown) => {
          this.writes.push({ ...about, isAccepted: false });
          throw error;
        },
      );
    }
    const answer = await call();
    if (method === 'acquire') this.#newestEpoch = Math.max(this.#newestEpoch, epochOf(answer));
    return answer;
  }

  async #awaited<T>(work: Promise<T>): Promise<T> {
    const state = { isDone: false };
    const watched = work.finally(() => (state.isDone = true));
    watched.catch(() => undefined);
    await this.until(() => state.isDone);
    return watched;
  }
}

/** What lies between a worker and the store. */
class Line {
  readonly #stand: () => void;
  readonly #beforeWrite: () => Promise<void>;
  #hasWritten = false;
  #parted: Partition | undefined;
  #isHeld = false;
  readonly #held: (() => void)[] = [];

  constructor(stand: () => void, beforeWrite: () => Promise<void>) {
    this.#stand = stand;
    this.#beforeWrite = beforeWrite;
  }

  part(partition: Partition): void {
    this.#parted = partition;
  }

  comeBack(): void {
    this.#parted = undefined;
    this.#isHeld = false;
    for (const arrive of this.#held.splice(0)) arrive();
  }

  async send<T>(isWrite: boolean, call: () => Promise<T>): Promise<T> {
    if (this.#parted === 'fails') throw new Error('the network is down, for a test');
    if (this.#parted !== undefined && isWrite) {
      this.#isHeld = true;
      if (this.#parted === 'stands') this.#stand();
    }
    if (isWrite && !this.#hasWritten) {
      this.#hasWritten = true;
      await this.#beforeWrite();
    }
    if (this.#isHeld) await new Promise<void>((resolve) => this.#held.push(resolve));
    return call();
  }
}

function epochOf(acquired: unknown): number {
  return (acquired as (WorkflowKey & { readonly epoch: number }) | undefined)?.epoch ?? 0;
}

function withClock(transport: EmbeddedTransport, clock: Clock): EmbeddedTransport {
  return new Proxy(transport, {
    get: (target, name) => {
      if (name === 'clock') return clock;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
    },
  });
}
