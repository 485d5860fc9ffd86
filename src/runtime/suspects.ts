// Who may run while a message is suspected of killing its process: a suspect runs alone, so that the next death convicts
// it and nobody else. First come, first served: nobody who comes later passes a suspect that waits, so it gets its turn, and
// those who came before the next suspect run before it.
import type { AttemptStore } from '../ports/attempt-store.js';

/** A place in the gate: waiting, then running. */
export interface Pass {
  /** The run ended, or is no longer wanted: a pass that still waits is withdrawn. Calling it twice is allowed. */
  leave(): void;
}

/** One per process and AttemptStore. What runs outside of it (handlers of runtimes without the store) it cannot hold back. */
export class SuspectGate {
  /** Places that run now: any number of ordinary ones, or one suspect. */
  readonly #running = new Set<Place>();
  /** In the order in which they came, each with what it starts. */
  readonly #waiting = new Map<Place, (pass: Pass) => void>();
  #alone: Place | undefined;
  #opening = false;

  /** The key of the suspect that runs alone now; undefined when none does. */
  get alone(): string | undefined {
    return this.#alone?.key;
  }

  /** How many wait: for a suspect to end, or as a suspect for all others to end. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Calls `start` once with the pass, in this call where nothing stands in the way, else when its turn has come. It holds its place until
   * `leave`, which belongs after the record of the run was ended or deleted. `start` must not throw.
   * @param key of the record, for reports.
   * @param suspect waits until nothing runs, and lets nothing run beside it.
   */
  admit(key: string, suspect: boolean, start: (pass: Pass) => void): Pass {
    const place = new Place(this, key, suspect);
    if (this.#waiting.size === 0 && this.#mayRun(place)) {
      this.#take(place);
      start(place);
    } else {
      this.#waiting.set(place, start);
    }
    return place;
  }

  /** @internal */
  left(place: Place): void {
    if (this.#running.delete(place)) {
      if (this.#alone === place) this.#alone = undefined;
    } else {
      this.#waiting.delete(place);
    }
    this.#letIn();
  }

  #mayRun({ suspect }: Place): boolean {
    return this.#alone === undefined && (!suspect || this.#running.size === 0);
  }

  #take(place: Place): void {
    this.#running.add(place);
    if (place.suspect) this.#alone = place;
  }

  /** A start may end at once and so come here again: the outer call goes on for it. */
  #letIn(): void {
    if (this.#opening) return;
    this.#opening = true;
    // What comes meanwhile is reached too: a Map goes on to what is added.
    for (const [place, start] of this.#waiting) {
      if (!this.#mayRun(place)) break;
      this.#waiting.delete(place);
      this.#take(place);
      start(place);
    }
    this.#opening = false;
  }
}

class Place implements Pass {
  readonly key: string;
  readonly suspect: boolean;
  readonly #gate: SuspectGate;
  #left = false;

  constructor(gate: SuspectGate, key: string, suspect: boolean) {
    this.#gate = gate;
    this.key = key;
    this.suspect = suspect;
  }

  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#gate.left(this);
  }
}

const gates = new WeakMap<AttemptStore, SuspectGate>();

/** The gate of all runtimes of this process that write their attempts to `store`. */
export function gateOf(store: AttemptStore): SuspectGate {
  let gate = gates.get(store);
  if (gate === undefined) gates.set(store, (gate = new SuspectGate()));
  return gate;
}
