// Those who are told what workflows do here: telemetry, and whoever listens. A listener has its own bounded queue: one that is slow misses the oldest and is
// told how many, and neither the workflows nor the other listeners wait for it.
import { OptionChecker } from '../core/options.js';
import type { WorkflowProgress } from '../ports/workflow-progress.js';
import type { WorkflowTelemetry } from './workflow-telemetry.js';

export interface ProgressOptions {
  /** Only workflows of this name. @default all */
  readonly name?: string | undefined;
  /** Only the one of this id. @default all */
  readonly id?: string | undefined;
  /** Ends the listening. @default it ends by `break`, and with the runtime */
  readonly signal?: AbortSignal | undefined;
  /** How many may wait to be taken; beyond that the oldest are dropped, and `missed` says how many. @default 1,000 */
  readonly buffer?: number | undefined;
}

export const DEFAULT_PROGRESS_BUFFER = 1_000;

/** `missed`: so many were dropped here, because they were not taken in time. */
export type ProgressEvent = WorkflowProgress | { readonly kind: 'missed'; readonly count: number };

export class ProgressFeed {
  readonly #observer: Pick<WorkflowTelemetry, 'isHeard' | 'tell'>;
  readonly #listeners = new Set<Listener>();
  #isOpen = true;

  /** @param observer is told first */
  constructor(observer: Pick<WorkflowTelemetry, 'isHeard' | 'tell'>) {
    this.#observer = observer;
  }

  /** False once the runtime has closed. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Whether anybody listens: otherwise there is nothing to tell. */
  get isHeard(): boolean {
    return this.#listeners.size > 0 || this.#observer.isHeard;
  }

  tell(progress: WorkflowProgress): void {
    this.#observer.tell(progress);
    for (const listener of this.#listeners) listener.hear(progress);
  }

  /** It hears what is told from now on. @throws ConfigurationError */
  listen(options: ProgressOptions = {}): AsyncIterableIterator<ProgressEvent> {
    const check = new OptionChecker('events');
    check.options(options, ['name', 'id', 'signal', 'buffer']);
    check.nonEmptyString('name', options.name);
    check.nonEmptyString('id', options.id);
    check.positiveInteger('buffer', options.buffer);
    check.methods('signal', options.signal, ['addEventListener'], 'an AbortSignal');
    check.throwIfAny();
    const listener = new Listener(options, () => void this.#listeners.delete(listener));
    if (this.#isOpen && options.signal?.aborted !== true) this.#listeners.add(listener);
    else listener.end();
    return listener;
  }

  /** Each listener gets what waits for it, and then its end. */
  close(): void {
    this.#isOpen = false;
    for (const listener of this.#listeners) listener.end();
  }
}

class Listener implements AsyncIterableIterator<ProgressEvent> {
  readonly #options: ProgressOptions;
  readonly #onEnd: () => void;
  readonly #abort = (): void => void this.return();
  #queue: WorkflowProgress[] = [];
  #missed = 0;
  #isOver = false;
  readonly #waiting: ((result: IteratorResult<ProgressEvent, undefined>) => void)[] = [];

  constructor(options: ProgressOptions, onEnd: () => void) {
    this.#options = options;
    this.#onEnd = onEnd;
    options.signal?.addEventListener('abort', this.#abort, { once: true });
  }

  hear(progress: WorkflowProgress): void {
    const { name, id, buffer = DEFAULT_PROGRESS_BUFFER } = this.#options;
    if ((name !== undefined && progress.workflow !== name) || (id !== undefined && progress.id !== id)) return;
    const taker = this.#waiting.shift();
    if (taker !== undefined) {
      taker({ done: false, value: progress });
      return;
    }
    this.#queue.push(progress);
    if (this.#queue.length <= buffer) return;
    this.#queue.shift();
    this.#missed += 1;
  }

  next(): Promise<IteratorResult<ProgressEvent, undefined>> {
    const value = this.#taken();
    if (value !== undefined) return Promise.resolve({ done: false, value });
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Nobody listens any more: what waits is forgotten. */
  return(): Promise<IteratorResult<ProgressEvent, undefined>> {
    this.#queue = [];
    this.#missed = 0;
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Nothing more comes. */
  end(): void {
    this.#isOver = true;
    this.#options.signal?.removeEventListener('abort', this.#abort);
    for (const taker of this.#waiting.splice(0)) taker({ done: true, value: undefined });
    this.#onEnd();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #taken(): ProgressEvent | undefined {
    if (this.#missed === 0) return this.#queue.shift();
    const count = this.#missed;
    this.#missed = 0;
    return { kind: 'missed', count };
  }
}
