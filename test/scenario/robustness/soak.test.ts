// A few seconds of the campaign `soak`: full load with everything observed while a runtime comes and goes. Each in a
// process of its own; decided by counts, and by the heap after forced collections, with limits for a busy machine.
import { describe, expect, it } from 'vitest';
import { minutes, seconds } from '../../../src/index.js';
import { soakInProcess } from '../../support/soak/soak-process.js';
import type { SoakSettings } from '../../support/soak/soak-settings.js';

const MEBIBYTE = 2 ** 20;

/** Compiling code and filling caches took 2 MiB in such a time. What a leak keeps of each message is far more. */
const SETTINGS: SoakSettings = {
  seed: 20,
  durationMs: seconds(5),
  restartEveryMs: seconds(1),
  checkEveryMs: seconds(0.2),
  quietLimitMs: minutes(1),
  maxGrowth: 0.25,
  slackBytes: 6 * MEBIBYTE,
  leaks: [],
};

describe.concurrent('a soak', () => {
  it('of some seconds loses no message, ends every span, leaves no timer, and its memory stays flat', async () => {
    const { violations, facts } = await soakInProcess(SETTINGS, false);

    expect(violations).toEqual([]);
    expect(facts.messages).toBeGreaterThan(1_000);
    expect(facts.spans).toBeGreaterThan(100);
    expect(facts.logLines).toBeGreaterThan(1_000);
    expect(facts.restarts).toBeGreaterThan(1);
    expect(facts.collections).toBeGreaterThan(3);
  }, 180_000);

  it('finds each fault that is built in', async () => {
    const { violations } = await soakInProcess(
      {
        ...SETTINGS,
        durationMs: seconds(4),
        // Every check brings a restart: more closed runtimes than may be in memory for a while.
        restartEveryMs: 0,
        quietLimitMs: seconds(2),
        leaks: ['heap', 'span', 'timer', 'callback', 'runtime', 'message'],
      },
      false,
      seconds(2),
    );

    const found = (pattern: RegExp): boolean => violations.some((violation) => pattern.test(violation));
    expect({
      heap: found(/^the heap grew by \d/),
      span: found(/spans were started and never ended: forgotten$/),
      timer: found(/^\d+ timers are left after a (drain|close)$/),
      callback: found(/^\d+ observable callbacks are left after close/),
      runtime: found(/^closed runtimes are kept in memory$/),
      message: found(/^1 messages are lost: plain 0$/),
      process: found(/^the process had not ended \d+ ms after everything was closed$/),
    }).toEqual({
      heap: true,
      span: true,
      timer: true,
      callback: true,
      runtime: true,
      message: true,
      process: true,
    });
  }, 180_000);
});
