import { describe, expect, it } from 'vitest';
import { StateListener } from '../../../src/core/state-listener.js';

describe('the listener of a subscription', () => {
  it('is told what is so when it comes, and what changes from then on; one before it no more', () => {
    const listener = new StateListener<string>();
    const told: string[] = [];
    listener.tell('nobody hears it');
    listener.listen((state) => void told.push(`1 ${state}`), ['connected']);
    listener.tell('lost');
    listener.listen((state) => void told.push(`2 ${state}`), ['lost']);
    listener.tell('connected');
    expect(told).toEqual(['1 connected', '1 lost', '2 lost', '2 connected']);
  });

  it('must be a function', () => {
    const refused = { code: 'CONFIGURATION_INVALID', message: 'onState needs a function, got 5' };
    expect(() => new StateListener().listen(5 as never, [])).toThrow(expect.objectContaining(refused));
  });
});
