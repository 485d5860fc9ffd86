// explain() of handlers of topics that are not persistent: no broker keeps a message of theirs.
import { describe, expect, it } from 'vitest';
import type { HandlerDefinition, HandlerExplanation, HandlerOptions } from '../../../src/index.js';
import { defineHandler, explain, fixedBackoff, seconds, success, topic } from '../../../src/index.js';

const fleeting = 'non-persistent://public/default/ticks';

function explained(source: HandlerDefinition['source'], more: Partial<HandlerOptions> = {}): HandlerExplanation {
  const redelivery = { maxDeliveries: 2, backoff: fixedBackoff(seconds(1)) };
  const worker = defineHandler({
    name: 'worker',
    source,
    subscription: 's',
    redelivery,
    ...more,
    handle: () => success(),
  });
  return explain([worker]).handlers[0]!;
}

/** The line of the text under one of its names. */
function line(name: string, { text }: HandlerExplanation): string | undefined {
  return new RegExp(`^  ${name} +(.*)$`, 'm').exec(text)?.[1];
}

const consequences = ({ crashes }: HandlerExplanation): readonly string[] =>
  crashes.map(({ consequence }) => consequence);

describe('of topics that are not persistent', () => {
  it('says that waits are kept in place, whoever keeps delays, and that a crash loses the message', () => {
    const worker = explained(fleeting);
    expect(worker).toMatchObject({ keptByBroker: 'none', waits: [{ strategies: ['local'] }] });
    expect(line('waits', worker)).toBe('after delivery 1: 1 s, kept in place');
    expect(line('deliverAt', worker)).toBe('not waited for: brokers deliver at once what is not persistent');
    expect(line('deliverAt', explained(fleeting, { delayedDelivery: 'client' }))).toBe('kept in place until then');
    expect(consequences(worker)).toEqual(['it is gone: no broker has kept it']);
  });

  it('says both where some are', () => {
    const worker = explained([topic('jobs'), topic(fleeting)]);
    expect(worker.keptByBroker).toBe('some');
    expect(line('waits', worker)).toBe('after delivery 1: 1 s, held by id or kept in place');
    expect(consequences(worker).length).toBeGreaterThan(5);
    expect(consequences(worker).at(-1)).toBe('it is gone: no broker has kept it');
  });

  it.each([
    [/non-persistent:\/\/public\/default\/t.*/, 'none'],
    [/t.*/, 'all'],
  ])('goes by the domain that the pattern %s names', (pattern, keptByBroker) => {
    expect(explained({ pattern }).keptByBroker).toBe(keptByBroker);
  });
});
