// Programs in which the model found something wrong, made as small as they showed it.
import type { Program, Setting, Step } from './program.js';

const USUAL: Setting = {
  seed: 1,
  topics: [['shared']],
  notices: 'all',
  latency: 0,
  maxLedgerEntries: 10_000,
  hasSegment: false,
};

function program(steps: readonly Step[], setting: Partial<Setting> = {}): Program {
  return { setting: { ...USUAL, ...setting }, steps };
}

const begin: Step = { do: 'begin', timeoutMs: 30_000, ticks: undefined };

function publish(transaction: number | undefined, ticks?: number): Step {
  return { do: 'publish', at: 0, transaction, batch: 0, ticks };
}

function acknowledge(transaction: number): Step {
  return { do: 'acknowledge', at: 0, consumer: 0, transaction, isCumulative: false, isAgain: false, ticks: undefined };
}

export const REGRESSIONS: readonly { readonly title: string; readonly program: Program }[] = [
  {
    title:
      'a process that died between the operation of a transaction and its first message left the operation for ever',
    program: program([
      { do: 'crash', call: 11, isAfter: true, ticks: undefined },
      { ...begin, ticks: 1 },
      publish(undefined),
      publish(0),
    ]),
  },
  {
    title: 'a topic that nobody told of the end of its transactions never looked',
    program: program([begin, publish(0)], { notices: 'lost' }),
  },
  {
    title: 'aborted messages were shown once their ledgers had been trimmed in memory alone',
    program: program([begin, publish(0), { do: 'unload', at: 0, ticks: undefined }, publish(0)]),
  },
  {
    title: 'aborted messages were shown whose ledgers had been trimmed in memory before the outcome was recorded',
    program: program([begin, begin, publish(0), { do: 'restart', at: 0, ticks: undefined }, publish(1)], {
      notices: 'lost',
    }),
  },
  {
    title: 'aborted messages were shown where the last one of their transaction had been refused by the store',
    program: program([begin, publish(0), { do: 'fault', call: 1, isAfter: false, ticks: undefined }, publish(0)]),
  },
  {
    title: 'the place up to which outcomes are in effect outlived its topic',
    program: program([
      begin,
      publish(0, 20),
      { do: 'fault', call: 3, isAfter: true, ticks: undefined },
      publish(undefined),
    ]),
  },
  {
    title: 'an acknowledgement whose header could not be read stayed pending behind the end of its transaction',
    program: program([
      publish(undefined),
      begin,
      { do: 'fault', call: 4, isAfter: true, ticks: undefined },
      acknowledge(0),
    ]),
  },
  {
    title: 'the mark of an end outlived everything else where nothing had been kept of its transaction',
    program: program([
      publish(undefined),
      begin,
      { do: 'fault', call: 4, isAfter: true, ticks: undefined },
      acknowledge(0),
      { do: 'crash', call: 6, isAfter: true, ticks: undefined },
      { do: 'abort', at: 0, rude: false, ticks: undefined },
      { do: 'join', at: 0, ticks: undefined },
      { do: 'pass', ms: 1_500, ticks: undefined },
      { do: 'join', at: 0, ticks: undefined },
    ]),
  },
  {
    title: 'a message of an open transaction was shown while its broker was closing',
    program: program([begin, publish(0, 20), publish(undefined, 20), { do: 'close', at: 0, ticks: undefined }]),
  },
  {
    title: 'a committed acknowledgement was lost where a plain one of the same message could not be stored before',
    program: program(
      [
        publish(undefined),
        begin,
        acknowledge(0),
        { do: 'commit', at: 0, rude: false, ticks: undefined },
        { do: 'fault', call: 1, isAfter: true, ticks: undefined },
        { do: 'acknowledge', at: 0, consumer: 0, transaction: 5, isCumulative: false, isAgain: true, ticks: undefined },
      ],
      { notices: 'lost' },
    ),
  },
  {
    title: 'what was aborted was shown where that could not be recorded before its topic was loaded again',
    program: program([
      publish(undefined),
      begin,
      publish(0),
      { do: 'fault', call: 6, isAfter: false, ticks: undefined },
      { do: 'abort', at: 0, rude: false, ticks: undefined },
      { do: 'unload', at: 0, ticks: undefined },
    ]),
  },
  {
    title:
      'the record of what was aborted outlived its topic where the process had died before the place of outcomes was written',
    program: program(
      [
        { ...begin, timeoutMs: 10_000 },
        { do: 'fault', call: 3, isAfter: false, ticks: undefined },
        publish(0),
        publish(2),
        { do: 'crash', call: 15, isAfter: false, ticks: undefined },
        { do: 'commit', at: 0, rude: false, ticks: 20 },
        { do: 'fault', call: 3, isAfter: false, ticks: 0 },
        { do: 'unload', at: 0, ticks: undefined },
      ],
      { seed: 14_605, topics: [['failover']] },
    ),
  },
  {
    title: 'what was committed was recorded as aborted where the answer was lost that its operation is gone',
    program: program(
      [
        { ...begin, timeoutMs: 1_000 },
        { ...begin, timeoutMs: 10_000 },
        begin,
        publish(1),
        { do: 'commit', at: 7, rude: false, ticks: undefined },
        { do: 'fault', call: 4, isAfter: true, ticks: undefined },
        { do: 'pass', ms: 73_038, ticks: undefined },
      ],
      { seed: 7_706, topics: [['key-shared']], notices: 'late' },
    ),
  },
];
