// The seam to a place where attempts are written down that survives this process: without one, `attempt` is a lower
// bound after a crash, and a message that kills its process is delivered again without end.
//
// The life of a record: `begin` before each run, `end` when the run has ended, `delete` once the message is acknowledged or
// a dead letter. What a process leaves open when it dies is judged when the next one opens the store:
// - It ran beside others: it is a suspect and has spent nothing, because a neighbour may have been the killer. What was
//   known before its run stays: after a death in attempt 3, two attempts are spent.
// - It ran alone: it is a suspect, that attempt is spent, and `deaths` counts one more. When a suspect with `deaths` above
//   0 has spent all its deliveries it is a dead letter with cause `process-died`, without another run.
// A suspect is to run alone (nothing else of the process runs meanwhile). Once it has ended by itself, however it ended, it
// is no suspect any more. A process that ends by will closes the store and so leaves nothing open.
import type { AttemptEnd, AttemptStart } from '../core/attempt-records.js';

/** What earlier runs of a message left. */
export interface AttemptRecord {
  /** Attempts spent: the `recorded` of `attempt = max(carried, counted, recorded, seen) + 1`. */
  readonly attempts: number;
  /** Not to run before, epoch milliseconds; undefined when it may run now. */
  readonly notBeforeMs: number | undefined;
  /** An earlier process died while it ran: it is to run alone. */
  readonly suspect: boolean;
  /** Such deaths while it ran alone, since a run of it last ended by itself. They are among `attempts`. */
  readonly deaths: number;
}

/** What a store holds when it is opened. */
export interface AttemptStoreSummary {
  readonly records: number;
  readonly suspects: number;
}

/**
 * All methods may be called from many handlers at once. Steps of one key take effect in the order of the calls. A step that
 * rejects has changed nothing and may be repeated: after a `begin` that rejects the handler must not run.
 */
export interface AttemptStore {
  /** For logs and errors, e.g. `file /var/lib/billing/attempts.log`. */
  readonly name: string;
  /** Records given up since it was opened, because there were more than the store keeps: their counts are lower bounds. */
  readonly forgotten: number;
  /**
   * Takes the records over from a process that died, and judges what it left open. Runtimes of one process that share
   * a store each open it; only the first does the work.
   * @throws PulseworkError STORE_LOCKED while another live process has it; STORE_FORMAT_UNKNOWN when what is there was
   *   not written by a version this one can read; STORE_NOT_WRITABLE, STORE_FULL, STORE_FAILED.
   */
  open(): Promise<AttemptStoreSummary>;
  /**
   * What is known of `key`; undefined when nothing is. A promise only where the store has to ask for it. What runs in this
   * process now is no suspect. A store that several processes share must not call suspect what runs in a live one.
   * @throws PulseworkError as `begin`.
   */
  find(key: string): AttemptRecord | undefined | Promise<AttemptRecord | undefined>;
  /**
   * A run is about to start. Resolves when the record would survive the death of this process; the machine's is not
   * covered. @throws PulseworkError ILLEGAL_STATE before `open`, ALREADY_CLOSED after `close`, STORE_FULL,
   *   STORE_NOT_WRITABLE, STORE_FAILED.
   */
  begin(key: string, start: AttemptStart): Promise<void>;
  /** The run ended and the message is not settled: it waits, goes back to the broker, or stops the runtime. @throws as `begin`. */
  end(key: string, end: AttemptEnd): Promise<void>;
  /** The message was acknowledged or is a dead letter. An unknown key is no error. @throws as `begin`. */
  delete(key: string): Promise<void>;
  /**
   * Closes once for each `open`; the last one writes down what is under way, closes what is still open as it stood before
   * its run, and lets go. More calls than that are allowed.
   */
  close(): Promise<void>;
}
