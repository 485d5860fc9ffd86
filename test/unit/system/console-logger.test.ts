import { afterEach, describe, expect, it, vi } from 'vitest';
import { PulseworkError, consoleLogger } from '../../../src/index.js';

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
      { level: 'info', message: 'hostile', fields: 'could not be shown' },
    ]);
  });

  it('takes its level from the environment, and refuses one it does not know', () => {
    vi.stubEnv('PULSEWORK_LOG_LEVEL', 'error');
    expect(lines(undefined).logger.isEnabled?.('warn')).toBe(false);
    vi.stubEnv('PULSEWORK_LOG_LEVEL', 'verbose');
    expect(() => lines(undefined)).toThrow(
      '"PULSEWORK_LOG_LEVEL" must be one of debug, info, warn, error, silent, got "verbose"',
    );
    vi.unstubAllEnvs();
    expect(() => consoleLogger({ lvl: 'info' } as never)).toThrow('unknown option "lvl", did you mean "level"?');
  });
});
