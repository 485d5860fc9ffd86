// The log of a handler: what it writes of lines that repeat, and that secrets do not come out.
import { describe, expect, it } from 'vitest';
import { HandlerLog } from '../../../src/runtime/handler-log.js';
import { FakeClock } from '../../../src/testing.js';
import type { LogFields } from '../../../src/index.js';
import { seconds } from '../../../src/index.js';

class Lines {
  readonly clock = new FakeClock();
  readonly lines: { readonly level: string; readonly message: string; readonly fields: LogFields | undefined }[] = [];
  readonly log: HandlerLog;

  constructor(options: { maxRepeats?: number; redact?: readonly RegExp[] } = {}) {
    const at = (level: string) => (message: string, fields?: LogFields) =>
      void this.lines.push({ level, message, fields });
    const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
    const { maxRepeats = 3, redact } = options;
    this.log = new HandlerLog({ logger, handler: 'h', redact, maxRepeats, clock: this.clock });
  }

  get messages(): string[] {
    return this.lines.map(({ message }) => message);
  }
}

describe('lines that repeat', () => {
  it('are written up to the limit, then counted, and the number is told when the 10 s are over', async () => {
    const { log, lines, clock } = new Lines();
    for (let i = 0; i < 10; i++) log.warn('receiving failed');
    expect(lines).toHaveLength(3);

    await clock.advanceBy(seconds(10));
    expect(lines[3]).toEqual({
      level: 'warn',
      message: 'lines like one above were not written',
      fields: { handler: 'h', line: 'warn receiving failed', notWritten: 7 },
    });
    log.warn('receiving failed');
    expect(lines).toHaveLength(5);
    expect(clock.pendingTimers).toEqual([]);
  });

  it('of other kinds are written: another message, another level, another class of error', () => {
    class Other extends Error {}
    const lines = new Lines({ maxRepeats: 1 });
    lines.log.error('a', { error: new Error('1') });
    lines.log.error('a', { error: new Error('2') });
    lines.log.error('a', { error: new Other('1') });
    lines.log.error('b');
    lines.log.warn('b');
    expect(lines.messages).toEqual(['a', 'a', 'b', 'b']);
  });

  it('after the end are all written, and leave no timer', () => {
    const { log, lines, clock } = new Lines({ maxRepeats: 1 });
    for (let i = 0; i < 3; i++) log.warn('a');
    log.close();
    for (let i = 0; i < 3; i++) log.warn('a');
    expect(lines.map(({ message }) => message)).toEqual(['a', 'lines like one above were not written', 'a', 'a', 'a']);
    expect(clock.pendingTimers).toEqual([]);
  });

  it('at debug are all written, and without a limit everything is', () => {
    const limited = new Lines({ maxRepeats: 1 });
    const unlimited = new Lines({ maxRepeats: Infinity });
    for (let i = 0; i < 500; i++) {
      limited.log.debug('a');
      unlimited.log.error('a');
    }
    expect([limited.lines.length, unlimited.lines.length]).toEqual([500, 500]);
  });

  it('are told at the end too, and leave no timer', () => {
    const { log, lines, clock } = new Lines({ maxRepeats: 1 });
    for (let i = 0; i < 5; i++) log.info('a');
    log.close();
    expect(lines.at(-1)?.fields).toMatchObject({ notWritten: 4 });
    expect(clock.pendingTimers).toEqual([]);
  });

  it('of endless kinds are bounded in memory: the oldest kind is told and forgotten', () => {
    const { log, lines } = new Lines({ maxRepeats: 1 });
    log.error('first');
    log.error('first');
    for (let i = 0; i < 1_000; i++) log.error(`kind ${i}`);
    expect(lines.filter(({ message }) => message.startsWith('lines like'))).toHaveLength(1);
  });
});

describe('secrets', () => {
  const secret = /pw=\w+/;

  it('are taken out of reasons and errors with their causes, as from dead letters', () => {
    const { log, lines } = new Lines({ redact: [secret] });
    const error = new Error('login pw=abc', { cause: new Error('pw=def') });
    log.error('delivery dead-lettered', { reason: 'pw=abc', error, attempt: 1 });
    expect(JSON.stringify(lines)).not.toMatch(secret);
    expect(lines[0]?.fields).toMatchObject({
      attempt: 1,
      reason: '[redacted]',
      error: { name: 'Error', message: 'login [redacted]', causes: 'Error: [redacted]' },
    });
  });

  it('leave an error as it is where nothing is to be redacted', () => {
    const { log, lines } = new Lines();
    const error = new Error('x');
    log.error('a', { error });
    expect(lines[0]?.fields?.['error']).toBe(error);
  });
});

describe('long texts', () => {
  it('are cut, redacted or not: a reason may be megabytes long', () => {
    const reason = 'x'.repeat(1e6);
    const [plain, redacting] = [new Lines(), new Lines({ redact: [/y+/g] })];
    plain.log.error('a', { reason });
    redacting.log.error('a', { reason, error: new Error(reason) });
    expect(String(plain.lines[0]?.fields?.['reason'])).toHaveLength(2_048);
    const { reason: shown, error } = redacting.lines[0]?.fields ?? {};
    expect([String(shown).length, (error as Error).message.length, (error as Error).stack?.length]).toEqual([
      2_048, 2_048, 8_192,
    ]);
  });
});
