// Counts what would end a process: rejections nobody handles and errors out of timers, while `run` goes on.
import { settlePromises } from '../../src/testing/fake-clock.js';

export async function unhandledDuring(run: () => Promise<void>): Promise<string[]> {
  const seen: string[] = [];
  const record = (error: unknown): void => void seen.push(describe(error));
  const saved = (['unhandledRejection', 'uncaughtException'] as const).map(
    (event) => [event, process.listeners(event as 'uncaughtException')] as const,
  );
  for (const [event] of saved) {
    process.removeAllListeners(event);
    process.on(event, record);
  }
  try {
    await run();
    for (let i = 0; i < 3; i++) await settlePromises();
  } finally {
    for (const [event, listeners] of saved) {
      process.removeAllListeners(event);
      for (const listener of listeners) process.on(event, listener);
    }
  }
  return seen;
}

function describe(error: unknown): string {
  try {
    return String(error);
  } catch {
    return 'an error that cannot be shown';
  }
}
