// The Logger port on pino itself.
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { pinoLogger } from '../../../src/index.js';

function logged(level = 'info'): { logger: ReturnType<typeof pinoLogger>; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  return { logger: pinoLogger(pino({ level, base: null }, { write })), lines };
}

describe('pinoLogger', () => {
  it('writes fields and message, and an error as pino names it, its causes told once', () => {
    const { logger, lines } = logged();
    class CardDeclined extends Error {}
    const error = new CardDeclined('no', { cause: new Error('limit', { cause: new TypeError('deep') }) });
    logger.warn('delivery will run again', { handler: 'h', error });
    expect(lines).toEqual([
      expect.objectContaining({
        level: 40,
        msg: 'delivery will run again',
        handler: 'h',
        err: expect.objectContaining({
          type: 'CardDeclined',
          message: 'no',
          causes: 'Error: limit <- TypeError: deep',
        }) as unknown,
      }),
    ]);
    expect(JSON.stringify(lines).split('TypeError: deep')).toHaveLength(2);
  });

  it('asks pino for its level, so that lines nobody reads cost nothing', () => {
    const { logger, lines } = logged('warn');
    expect([logger.isEnabled?.('info'), logger.isEnabled?.('warn')]).toEqual([false, true]);
    logger.info('no');
    logger.debug('no');
    logger.error('yes');
    expect(lines.map(({ msg }) => msg)).toEqual(['yes']);
  });

  it('takes errors that were shown already, and lines without fields', () => {
    const { logger, lines } = logged();
    logger.error('a', { error: { name: 'Error', message: '[redacted]' } });
    logger.info('b');
    expect(lines[0]).toMatchObject({ err: { name: 'Error', message: '[redacted]' } });
    expect(lines[1]).toMatchObject({ msg: 'b' });
  });

  it('writes all fields but one that cannot be read, cut, and none in place of what pino writes itself', () => {
    const { logger, lines } = logged();
    const error = new Error('x'.repeat(1e6));
    logger.error('a', {
      first: 1,
      get hostile(): never {
        throw new Error('getter');
      },
      level: 'debug',
      time: 0,
      msg: 'of the user',
      error,
      last: 2,
    });
    expect(lines[0]).toMatchObject({ first: 1, hostile: '[could not be shown]', last: 2, level: 50, msg: 'a' });
    expect(lines[0]).toMatchObject({ level_: 'debug', time_: 0, msg_: 'of the user' });
    expect(JSON.stringify(lines[0]).length).toBeLessThan(12_000);
  });

  it('refuses what has not its methods', () => {
    expect(() => pinoLogger(undefined as never)).toThrow(/pinoLogger takes a pino logger/);
    expect(() => pinoLogger({ info: () => undefined } as never)).toThrow(/pinoLogger takes a pino logger/);
  });
});
