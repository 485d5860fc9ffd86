import { afterEach, describe, expect, it, vi } from 'vitest';
import { ConfigurationError, PulseworkError, consoleLogger } from '../../../src/index.js';

afterEach(() => void vi.unstubAllEnvs());

function lines(level: 'debug' | 'info' | 'warn' | 'error' | 'silent' | undefined): {
  logger: ReturnType<typeof consoleLogger>;
  written: unknown[];
} {
  const written: unknown[] = [];
  return { logger: consoleLogger({ level, write: (line) => void written.push(JSON.parse(line)) }), written };
}

describe('consoleLogger', () => {
  it('writes one JSON object per line, at its level and above', () => {
    const { logger, written } = lines('info');
    logger.debug('not shown');
    logger.info('shown', { handler: 'h' });
    logger.error('shown too');
    expect(written).toEqual([
      { level: 'info', message: 'shown', handler: 'h' },
      { level: 'error', message: 'shown too' },
    ]);
    expect([logger.isEnabled?.('debug'), logger.isEnabled?.('warn')]).toEqual([false, true]);
  });

  it('shows an error with its code and the chain of its causes, once', () => {
    const { logger, written } = lines('info');
    logger.error('failed', {
      error: new PulseworkError('CALL_TIMED_OUT', 'no answer', { cause: new TypeError('socket') }),
    });
    expect(written[0]).toMatchObject({
      error: { name: 'PulseworkError', message: 'no answer', code: 'CALL_TIMED_OUT', causes: 'TypeError: socket' },
    });
  });

  it('writes a line also for fields that cannot be shown', () => {
    const { logger, written } = lines('info');
    const circle: Record<string, unknown> = {};
    circle['self'] = circle;
    logger.info('circle', { circle, big: 5n });
    logger.info('hostile', {
      get field(): never {
        throw new Error('getter');
      },
    });
    expect(written).toEqual([
      { level: 'info', message: 'circle', circle: { self: '[circular]' }, big: '5' },
      { level: 'info', message: 'hostile', field: '[could not be shown]' },
    ]);
  });

  it('writes all fields but the one that cannot be read, or not be shown, and what is there twice', () => {
    const { logger, written } = lines('info');
    const shared = { a: 1 };
    const deep = {
      get inner(): never {
        throw new Error('getter');
      },
    };
    logger.info('x', { first: shared, deep, second: [shared, { shared }], absent: undefined, last: 1 });
    const notShown = '[could not be shown]';
    expect(written).toEqual([
      {
        level: 'info',
        message: 'x',
        first: { a: 1 },
        deep: notShown,
        second: [{ a: 1 }, { shared: { a: 1 } }],
        last: 1,
      },
    ]);
  });

  it('keeps its own level and message beside fields of these names', () => {
    const { logger, written } = lines('info');
    logger.error('failed', { level: 'debug', message: 'of the user' });
    expect(written).toEqual([{ level: 'error', message: 'failed', level_: 'debug', message_: 'of the user' }]);
  });

  it('cuts what an error says, and its stack', () => {
    const { logger, written } = lines('info');
    logger.error('failed', { error: new Error('x'.repeat(1e6), { cause: new Error('y'.repeat(1e6)) }) });
    const { error } = written[0] as { error: { message: string; stack: string; causes: string } };
    expect([error.message.length, error.stack.length, error.causes.length]).toEqual([2_048, 8_192, 2_048]);
    expect(error.message).toMatch(/x \[cut\]$/);
  });

  it('takes its level from the environment, and refuses one it does not know', () => {
    vi.stubEnv('PULSEWORK_LOG_LEVEL', 'error');
    expect(lines(undefined).logger.isEnabled?.('warn')).toBe(false);
    vi.stubEnv('PULSEWORK_LOG_LEVEL', 'verbose');
    expect(() => lines(undefined)).toThrow(
      '"PULSEWORK_LOG_LEVEL" must be one of debug, info, warn, error, silent, got "verbose"',
    );
    vi.unstubAllEnvs();
    expect(() => consoleLogger(null as never)).toThrow(ConfigurationError);
    expect(() => consoleLogger({ lvl: 'info' } as never)).toThrow('unknown option "lvl", did you mean "level"?');
  });
});
