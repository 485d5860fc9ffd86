// One direction of one proxied connection: hands bytes on in order, late, changed, up to a byte, not at
// all or never.
import type { Socket } from 'node:net';

interface Waiting {
  readonly bytes: Buffer;
  readonly dueAt: number;
}

export class ProxiedStream {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #delayMs = 0;
  #losing = false;
  #frozen = false;
  #ended = false;
  /** How many bytes may still pass before the cut. */
  #bytesLeft = Infinity;

  /** @param alter may change bytes as they come. */
  constructor(from: Socket, to: Socket, alter: (bytes: Buffer) => void) {
    this.#from = from;
    this.#to = to;
    from.on('data', (bytes: Buffer) => {
      alter(bytes);
      this.#take(bytes);
    });
    from.on('end', () => this.#end());
    // A reset on one side is a reset on the other.
    from.on('close', (hadError) => {
      clearTimeout(this.#timer);
      if (hadError || !this.#ended) to.resetAndDestroy();
    });
    to.on('drain', () => this.#moveIfNotFrozen());
  }

  delay(delayMs: number): void {
    this.#delayMs = delayMs;
  }

  lose(): void {
    this.#losing = true;
  }

  freeze(): void {
    this.#frozen = true;
    this.#from.pause();
    clearTimeout(this.#timer);
  }

  thaw(): void {
    this.#losing = false;
    this.#bytesLeft = Infinity;
    this.#frozen = false;
    this.#moveIfNotFrozen();
  }

  cutAfter(bytes: number): void {
    this.#bytesLeft = Math.min(this.#bytesLeft, bytes);
    if (bytes === 0) this.#cut(Buffer.alloc(0));
  }

  #take(bytes: Buffer): void {
    if (this.#losing) return;
    // Never before what came earlier, also when the delay was shortened meanwhile.
    const earliest = this.#waiting.at(-1)?.dueAt ?? 0;
    this.#waiting.push({ bytes, dueAt: Math.max(Date.now() + this.#delayMs, earliest) });
    if (!this.#frozen) this.#move();
  }

  #moveIfNotFrozen(): void {
    if (this.#frozen) return;
    this.#from.resume();
    this.#move();
  }

  #move(): void {
    clearTimeout(this.#timer);
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const waitMs = next.dueAt - Date.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#move(), waitMs);
        return;
      }
      this.#waiting.shift();
      if (!this.#write(next.bytes)) return;
    }
    if (this.#ended) this.#to.end();
  }

  /** Gives whether more may be written now. */
  #write(bytes: Buffer): boolean {
    if (bytes.length >= this.#bytesLeft) {
      this.#cut(bytes.subarray(0, this.#bytesLeft));
      return false;
    }
    this.#bytesLeft -= bytes.length;
    if (this.#to.write(bytes)) return true;
    this.#from.pause();
    return false;
  }

  /** The receiver gets the last bytes before its stream ends; the sender is reset, as by a peer that is gone. */
  #cut(last: Buffer): void {
    this.#waiting.length = 0;
    this.#ended = true;
    this.#from.removeAllListeners('data');
    this.#to.end(last, () => {
      this.#to.destroy();
      this.#from.resetAndDestroy();
    });
  }

  #end(): void {
    this.#ended = true;
    if (!this.#frozen && this.#waiting.length === 0) this.#to.end();
  }
}
