// What several users share: one opening for the first, one letting go after the last, never both at once.
import { expect, it } from 'vitest';
import { SharedOpening } from '../../../src/core/shared-opening.js';

function shared() {
  const opening = new SharedOpening('store "s"');
  const log: string[] = [];
  const step = (name: string) => async () => {
    log.push(`${name} begins`);
    await Promise.resolve();
    log.push(`${name} ends`);
  };
  return {
    opening,
    log,
    open: () => opening.open(step('first'), () => 'opened'),
    close: () => opening.close(step('last')),
  };
}

it('opens for the first and lets go after the last, whatever is asked for at once', async () => {
  const { opening, log, open, close } = shared();

  expect(opening.problem()).toMatchObject({
    code: 'ILLEGAL_STATE',
    message: 'store "s" is not open yet; open() it first',
  });
  expect(await Promise.all([open(), open(), close(), close(), close(), open()])).toEqual([
    ...['opened', 'opened', undefined, undefined, undefined, 'opened'],
  ]);
  expect(log).toEqual([...['first begins', 'first ends', 'last begins', 'last ends', 'first begins', 'first ends']]);
  expect(opening.problem()).toBeUndefined();
});

it('is closed from the moment on in which it is let go, and may be opened again after an opening that failed', async () => {
  const { opening, open } = shared();
  const failed = opening.open(
    () => Promise.reject(new Error('no disk')),
    () => 'opened',
  );

  await expect(failed).rejects.toThrow('no disk');
  expect(opening.problem()).toMatchObject({ code: 'ILLEGAL_STATE' });
  expect(await open()).toBe('opened');
  await opening.close(async () => expect(opening.problem()).toMatchObject({ code: 'ALREADY_CLOSED' }));
  expect(opening.problem()).toMatchObject({ code: 'ALREADY_CLOSED', message: 'store "s" was closed before the call' });
});
