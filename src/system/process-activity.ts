// What is open in this process and listened for, by kind: for finding out what something has left behind.

/** Counts by kind, e.g. `resource Timeout` or `listener SIGTERM`. Only what keeps the process alive is a resource here. */
export function processActivity(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const resource of process.getActiveResourcesInfo()) {
    const kind = `resource ${resource}`;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  for (const event of process.eventNames()) counts.set(`listener ${String(event)}`, process.listenerCount(event));
  return counts;
}
