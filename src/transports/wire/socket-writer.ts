// What goes out on one socket: frames of one turn of the event loop leave together, so that thousands of small
// commands cost one system call.
import type { Socket } from 'node:net';
import type { Clock } from '../../ports/clock.js';

/** More is not copied together but handed over piece by piece, and not kept waiting for the end of the turn. */
const MAX_GATHERED_BYTES = 128 * 1024;

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
    const [first] = frames;
    if (frames.length === 1 && first !== undefined) this.#socket.write(first);
    else this.#socket.write(Buffer.concat(frames));
  }
}
