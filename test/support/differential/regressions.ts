// Programs on which the two brokers once differed, made as short as they differed. Kept as programs, not as seeds: a change of
// the generator would make other programs of the same seeds.
import type { Program } from './program.js';

export interface Regression {
  /** What one of them did wrong, as a sentence about what is right. */
  readonly title: string;
  /** Of the run that showed it. */
  readonly seed: number;
  readonly program: Program;
}

export const REGRESSIONS: readonly Regression[] = [
  {
    // The wire asked again for what a `receive` had asked for that was given up before the connection was lost.
    title: 'with a prefetch of 0, a consumer that connects again asks for nothing while nobody waits',
    seed: 76,
    program: {
      subscriptions: [{ type: 'key-shared', initialPosition: 'earliest', flow: 'narrow' }],
      steps: [
        { do: 'open', sub: 0, slot: 0 },
        { do: 'publish', messages: [{ key: 'A' }] },
        { do: 'consume', sub: 0, slot: 0, count: 2 },
        { do: 'unload' },
        { do: 'publish', messages: [{ key: 'B' }] },
        { do: 'seek', sub: 0, slot: 0, pick: 0, to: 'earliest' },
      ],
    },
  },
  {
    title: 'a ledger that an unload closed is removed with the others once everybody has passed it',
    seed: 117,
    program: {
      subscriptions: [{ type: 'failover', initialPosition: 'earliest', flow: 'wide' }],
      steps: [
        { do: 'open', sub: 0, slot: 0 },
        { do: 'publish', messages: [{ key: 'k1' }, { key: 'B' }] },
        { do: 'unload' },
        { do: 'publish', messages: [{ key: 'A' }, { key: 'k1' }] },
        { do: 'unload' },
        { do: 'seek', sub: 0, slot: 0, pick: 0, to: 'latest' },
        { do: 'seek', sub: 0, slot: 0, pick: 3, to: 'message' },
      ],
    },
  },
  {
    title:
      'a seek to the end of what an unload closed lets go of it: it is removed when the other subscription goes on',
    seed: 1040,
    program: {
      subscriptions: [
        { type: 'shared', initialPosition: 'earliest', flow: 'wide' },
        { type: 'shared', initialPosition: 'earliest', flow: 'wide' },
      ],
      steps: [
        { do: 'open', sub: 0, slot: 0 },
        { do: 'open', sub: 1, slot: 0 },
        { do: 'publish', messages: [{ key: 'A' }, { key: 'B' }] },
        { do: 'unload' },
        { do: 'seek', sub: 1, slot: 0, pick: 0, to: 'latest' },
        { do: 'publish', messages: [{ key: 'A' }] },
        { do: 'ack-all', sub: 0 },
        // A seek that comes before the ledger is removed brings it back to the subscription.
        { do: 'trim' },
        { do: 'seek', sub: 1, slot: 0, pick: 0, to: 'earliest' },
      ],
    },
  },
  {
    title: 'what everybody has acknowledged before an unload is gone after it',
    seed: 117,
    program: {
      subscriptions: [{ type: 'shared', initialPosition: 'earliest', flow: 'wide' }],
      steps: [
        { do: 'open', sub: 0, slot: 0 },
        { do: 'publish', messages: [{ key: 'A' }, { key: 'A' }] },
        { do: 'ack-all', sub: 0 },
        { do: 'unload' },
        { do: 'seek', sub: 0, slot: 0, pick: 0, to: 'earliest' },
        { do: 'publish', messages: [{ key: 'B' }] },
        { do: 'seek', sub: 0, slot: 0, pick: 0, to: 'earliest' },
      ],
    },
  },
  {
    title: 'a ledger that was acknowledged stays until a message of the next one is',
    seed: 117,
    program: {
      subscriptions: [{ type: 'shared', initialPosition: 'earliest', flow: 'wide' }],
      steps: [
        { do: 'open', sub: 0, slot: 0 },
        { do: 'publish', messages: [{ key: 'A' }, { key: 'A' }] },
        { do: 'unload' },
        { do: 'publish', messages: [{ key: 'B' }, { key: 'B' }] },
        { do: 'ack', sub: 0, pick: 0, count: 2, by: -1 },
        { do: 'seek', sub: 0, slot: 0, pick: 0, to: 'earliest' },
        { do: 'ack', sub: 0, pick: 0, count: 3, by: -1 },
        { do: 'seek', sub: 0, slot: 0, pick: 0, to: 'earliest' },
      ],
    },
  },
];
