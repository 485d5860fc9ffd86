// What a killed service must not leave behind: each rule on facts that break it and it alone.
import { expect, it } from 'vitest';
import type { ReceivedMessage } from '../../../src/core/message.js';
import type { ServiceFacts } from '../../support/crash/service-checks.js';
import { serviceViolations } from '../../support/crash/service-checks.js';
import type { Job } from '../../support/crash/service-jobs.js';

const JOBS: readonly Job[] = ['plain', 'follow', 'hopeless'].map((kind) => ({ id: kind, kind, takesMs: 0 }));

function message(payload: unknown, properties: Readonly<Record<string, string>>): ReceivedMessage {
  return { payload: Buffer.from(JSON.stringify(payload)), properties } as Partial<ReceivedMessage> as ReceivedMessage;
}

function letter(id: string, cause: string): ReceivedMessage {
  return message({ id }, { id, 'pulsework-cause': cause });
}

function follow(n: number, id: string, of = 'follow'): ReceivedMessage {
  return message({ of, n }, { 'pulsework-message-id': id });
}

const GOOD: ServiceFacts = {
  told: ['ready', 'run plain 1', 'done plain', 'run follow 1', 'done follow', 'done follow', 'run hopeless 1'],
  letters: [letter('hopeless', 'redeliveries-exhausted')],
  follows: [follow(0, 'a'), follow(1, 'b'), follow(0, 'a')],
  backlog: 0,
};

it('nothing, when every job is done or a dead letter; what was done twice may be there twice', () => {
  expect(serviceViolations(JOBS, GOOD)).toEqual([]);
});

it.each<[string, Partial<ServiceFacts>]>([
  ['a backlog of 2 is left', { backlog: 2 }],
  ['plain is acknowledged and was never handled', { told: ['run plain 1', 'done follow'] }],
  ['plain is a dead letter (poison)', { letters: [...GOOD.letters, letter('plain', 'poison')] }],
  ['hopeless is gone without a dead letter', { letters: [] }],
  [
    'hopeless is a dead letter because of poison, not redeliveries-exhausted',
    { letters: [letter('hopeless', 'poison')] },
  ],
  ['hopeless was handled', { told: [...GOOD.told, 'done hopeless'] }],
  ['follow-up 1 of follow is missing', { follows: [follow(0, 'a')] }],
  ['follow-up 0 of plain is of no job', { follows: [...GOOD.follows, follow(0, 'c', 'plain')] }],
  ['copies of follow-up 0 of follow have different ids', { follows: [...GOOD.follows, follow(0, 'c')] }],
  ['2 follow-ups share 1 ids', { follows: [follow(0, 'a'), follow(1, 'a')] }],
])('%s', (violation, wrong) => {
  expect(serviceViolations(JOBS, { ...GOOD, ...wrong })).toEqual([violation]);
});
