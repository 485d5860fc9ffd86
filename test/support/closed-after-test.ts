// What a test opens and its end closes, the newest first. Asked for test by test: files of one worker share this module, and
// a hook of it would belong to whichever of them came first. Not for concurrent tests, which are not known from here.
import { onTestFinished } from 'vitest';

/** @returns what it is given. */
export function closedAfterTest<T extends { close(): unknown }>(opened: T): T {
  onTestFinished(async () => void (await opened.close()));
  return opened;
}
