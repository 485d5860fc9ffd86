// A workflow store with some of its methods replaced.
import type { WorkflowStore } from '../../../src/ports/workflow-store.js';

export function storeWith(inner: WorkflowStore, change: Partial<WorkflowStore>): WorkflowStore {
  return new Proxy(inner, {
    get: (target, name) => {
      const own: unknown = Reflect.get(change, name);
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
