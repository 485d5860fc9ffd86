// Who may publish to a topic beside a producer: one set of words for every client and for the embedded broker.

/**
 * Who may publish to a topic beside this publisher. `shared`: all that share. `exclusive`: nobody; refused with
 * PRODUCER_FENCED while there are others. `wait-for-exclusive`: the same, but it waits until it is alone.
 * `exclusive-with-fencing`: at once; exclusive ones that were there are shut out for good (PRODUCER_FENCED), shared ones
 * for as long as it stays.
 */
export type AccessMode = 'shared' | 'exclusive' | 'wait-for-exclusive' | 'exclusive-with-fencing';

export const ACCESS_MODES: readonly AccessMode[] = [
  'shared',
  'exclusive',
  'wait-for-exclusive',
  'exclusive-with-fencing',
];
