// Waiting for something, and no longer than may be.

/** A `Clock`: ports know this folder, not the other way round. */
interface Timers {
  setTimer(delayMs: number, run: () => void): { cancel(): void };
}

/** Whether `work`, which never rejects, ends within `limitMs` (`Infinity` for no limit), and before `hurried`. */
export function endsWithin(
  clock: Timers,
  work: Promise<unknown>,
  limitMs: number,
  hurried?: Promise<void>,
): Promise<boolean> {
  return new Promise((resolve) => {
    const ended = (inTime: boolean): void => {
      timer?.cancel();
      resolve(inTime);
    };
    const timer = limitMs === Infinity ? undefined : clock.setTimer(Math.max(0, limitMs), () => ended(false));
    void work.then(() => ended(true));
    void hurried?.then(() => ended(false));
  });
}
