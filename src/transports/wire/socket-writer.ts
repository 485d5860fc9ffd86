// What goes out on one socket: frames of one turn of the event loop leave together, so that thousands of small
// commands cost one system call.
import type { Socket } from 'node:net';
import type { Clock } from '../../ports/clock.js';

/** So much does not wait for the end of the turn. */
const MAX_GATHERED_BYTES = 128 * 1024;
/** A frame as large as this is handed over as it is: copying it would cost more than a place of its own in the call. */
const LARGE_FRAME_BYTES = 16 * 1024;

export class SocketWriter {
  readonly #socket: Socket;
  readonly #clock: Clock;
  #frames: Buffer[] = [];
  #bytes = 0;
  #scheduled = false;

  constructor(socket: Socket, clock: Clock) {
    this.#socket = socket;
    this.#clock = clock;
  }

  write(frame: Buffer): void {
    this.#frames.push(frame);
    this.#bytes += frame.length;
    if (this.#bytes >= MAX_GATHERED_BYTES) this.flush();
    else if (!this.#scheduled) {
      this.#scheduled = true;
      this.#clock.nextTurn(() => {
        this.#scheduled = false;
        this.flush();
      });
    }
  }

  flush(): void {
    const frames = this.#frames;
    if (frames.length === 0 || this.#socket.destroyed) return;
    this.#frames = [];
    this.#bytes = 0;
    this.#socket.cork();
    let small: Buffer[] = [];
    for (const frame of frames) {
      if (frame.length < LARGE_FRAME_BYTES) {
        small.push(frame);
        continue;
      }
      this.#writeTogether(small);
      small = [];
      this.#socket.write(frame);
    }
    this.#writeTogether(small);
    this.#socket.uncork();
  }

  #writeTogether(frames: readonly Buffer[]): void {
    const [first] = frames;
    if (first !== undefined) this.#socket.write(frames.length === 1 ? first : Buffer.concat(frames));
  }
}
