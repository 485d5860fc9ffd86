// Tells of entries that came and cannot be handed on. They stay at the broker, so somebody has to know.
import type { EntryPosition } from '../core/message-id.js';
import type { Logger } from '../ports/logger.js';

export class UnreadableEntries {
  readonly #topic: string;
  readonly #logger: Logger | undefined;
  #count = 0;

  constructor(topic: string, logger: Logger | undefined) {
    this.#topic = topic;
    this.#logger = logger;
  }

  /** A topic full of them must not fill the log: the 1st, the 10th, the 100th and so on are told. */
  tell(position: EntryPosition, reason: string): void {
    this.#count += 1;
    if (!/^10*$/.test(String(this.#count))) return;
    const count = `${this.#count} so far`;
    this.#logger?.error(`${this.nameOf(position)} cannot be read and stays unacknowledged (${count}): ${reason}`);
  }

  /** For people. */
  nameOf({ ledgerId, entryId }: EntryPosition): string {
    return `entry ${ledgerId}:${entryId} of ${this.#topic}`;
  }
}
