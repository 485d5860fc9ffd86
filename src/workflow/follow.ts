// The story of one workflow from its beginning to its end, told from its journal: whole, in order, and the same in whatever
// processes it is worked on. Here it is looked at when something was written here, else once in a scan interval.
import { hasEnded } from '../core/workflow-journal.js';
import type { WorkflowProgress } from '../ports/workflow-progress.js';
import type { WorkflowKey, WorkflowSnapshot } from '../ports/workflow-store.js';
import { JournalTeller } from './progress.js';
import type { WorkflowMachine } from './workflow-machine.js';

/** Ends with the workflow, with `signal`, and with the runtime. One that continues as new may lose what was not looked at. */
export async function* followed(
  machine: WorkflowMachine,
  key: WorkflowKey,
  signal: AbortSignal | undefined,
): AsyncGenerator<WorkflowProgress, undefined> {
  const story = new Story();
  for (;;) {
    const changed = nextChange(machine, key, signal);
    let snapshot: WorkflowSnapshot | undefined;
    try {
      if (changed.isOver()) return undefined;
      snapshot = await machine.store('reading a workflow', (store) => store.read(key));
      if (snapshot === undefined && story.hasBegun) return undefined;
      if (snapshot !== undefined) yield* story.news(snapshot);
      if (snapshot !== undefined && hasEnded(snapshot.record.status)) return undefined;
      await changed.happened;
    } finally {
      changed.cancel();
    }
  }
}

class Story {
  #run = 0;
  #seen = 0;
  #teller = new JournalTeller();
  #wasBlocked = false;

  get hasBegun(): boolean {
    return this.#run > 0;
  }

  news({ record, journal }: WorkflowSnapshot): readonly WorkflowProgress[] {
    const { name: workflow, id, run, version, createdMs, runStartedMs, status, error } = record;
    const news: WorkflowProgress[] = [];
    const about = { workflow, id, run };
    if (this.#run === 0) news.push({ ...about, run: 1, atMs: createdMs, kind: 'started', version });
    if (run !== this.#run) {
      if (run > 1) news.push({ ...about, run: run - 1, atMs: runStartedMs, kind: 'continued' });
      this.#run = run;
      this.#seen = 0;
      this.#teller = new JournalTeller();
    }
    for (const progress of this.#teller.told(record, journal.slice(this.#seen))) news.push(progress);
    const isBlocked = status === 'blocked' && error !== undefined;
    if (isBlocked && !this.#wasBlocked)
      news.push({ ...about, atMs: journal.at(-1)?.atMs ?? runStartedMs, kind: 'blocked', error });
    this.#wasBlocked = isBlocked;
    this.#seen = journal.length;
    return news;
  }
}

interface Change {
  readonly happened: Promise<void>;
  isOver(): boolean;
  cancel(): void;
}

/** Set up before the store is asked: what is written between the two is not missed. */
function nextChange(machine: WorkflowMachine, { name, id }: WorkflowKey, signal: AbortSignal | undefined): Change {
  let settle: () => void = () => undefined;
  const happened = new Promise<void>((resolve) => (settle = resolve));
  const listening = machine.feed.listen({ name, id, signal, buffer: 1 });
  let isOver = false;
  void listening.next().then(({ done }) => {
    isOver = done === true;
    settle();
  });
  const timer = machine.clock.setTimer(machine.scanIntervalMs, settle);
  return {
    happened,
    isOver: () => isOver || signal?.aborted === true || !machine.feed.isOpen,
    cancel: () => {
      timer.cancel();
      void listening.return?.();
    },
  };
}
