// What is odd about the official client, by name. All of it is on, as in the client; a test may switch one off to see what it
// alone is responsible for.

export interface OddBehaviours {
  /** An acknowledgement resolves at once and is sent within 100 ms; until then an exit, a cut or an unload loses it. */
  readonly earlyAcks: boolean;
  /** Each negative acknowledgement sets back the one timer of all of them. */
  readonly starvingNacks: boolean;
  /** Promises of `receive()` that become ready together settle in reverse. */
  readonly reversedReceives: boolean;
  /** Closing a producer rejects what has no receipt, stored or not. */
  readonly droppingClose: boolean;
  /** Errors are plain, with a text as their only fact; otherwise they are those of the wire client. */
  readonly plainErrors: boolean;
  /** What is collected as garbage is closed; a consumer that receives takes the process with it. */
  readonly closesWhatIsCollected: boolean;
  /** A serialized message id does not tell the size of its batch. */
  readonly hidesBatchSize: boolean;
}

export const ALL_ODD: OddBehaviours = {
  earlyAcks: true,
  starvingNacks: true,
  reversedReceives: true,
  droppingClose: true,
  plainErrors: true,
  closesWhatIsCollected: true,
  hidesBatchSize: true,
};

/** What ends the process in the client: it is written down, and a test that caused it fails. */
export class Violations {
  readonly list: string[] = [];

  /** @throws an Error that no caller expects. */
  abort(what: string): never {
    this.list.push(what);
    throw new Error(`the process would have ended: ${what}`);
  }

  note(what: string): void {
    this.list.push(what);
  }
}
