// A store that lies on purpose: it says that the start of a step is written before it is. Only a process that dies in between shows it.
import type { WorkflowKey, WorkflowStore, WorkflowWrite, WriteAnswer } from '../../../src/workflow.js';
import { setTimeout as sleep } from 'node:timers/promises';

const LATE_MS = 60;

export function writingLate(store: WorkflowStore): WorkflowStore {
  const under = new Map<string, Promise<unknown>>();
  const write = async (key: WorkflowKey, given: WorkflowWrite): Promise<WriteAnswer> => {
    const text = JSON.stringify([key.name, key.id]);
    await under.get(text);
    if (given.release !== undefined || given.entries.every(({ kind }) => kind !== 'attempt'))
      return store.write(key, given);
    const late = sleep(LATE_MS).then(() => store.write(key, given));
    under.set(
      text,
      late.catch(() => undefined),
    );
    return { writeVersion: given.expectedVersion + 1, released: false };
  };
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'write') return write;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
    },
  });
}
