// A file that only grows, until it is replaced whole. What a write has left half done is cut off before the next one, so
// that no line ever follows a torn one. Handed to the operating system, not forced to the disk: the process may die.
import type { FileHandle } from 'node:fs/promises';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { errnoOf } from './file-errors.js';

export class AppendFile {
  readonly #path: string;
  #handle: FileHandle | undefined;
  #length = 0;
  #torn = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** '' when there is no file yet. */
  async read(): Promise<string> {
    try {
      return await readFile(this.#path, 'utf8');
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return '';
      throw error;
    }
  }

  /** Resolves when the operating system has it. After a rejection the file reads as before. One call at a time. */
  async append(text: string): Promise<void> {
    const handle = this.#handle;
    if (handle === undefined) throw new Error(`${this.#path} was not opened by replace()`);
    if (this.#torn) await handle.truncate(this.#length);
    this.#torn = true;
    this.#length += await writeAt(handle, text, this.#length);
    this.#torn = false;
  }

  /** Puts `text` in the place of all there is: whoever dies on the way leaves the old file or the new one. */
  async replace(text: string): Promise<void> {
    const fresh = `${this.#path}.new`;
    // Not for the world: keys may name customers.
    const handle = await open(fresh, 'w', 0o600);
    try {
      const length = await writeAt(handle, text, 0);
      await rename(fresh, this.#path);
      const old = this.#handle;
      this.#handle = handle;
      this.#length = length;
      this.#torn = false;
      await old?.close();
    } catch (error) {
      if (this.#handle === handle) throw error;
      await handle.close();
      await rm(fresh, { force: true });
      throw error;
    }
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }
}

/** The number of bytes written. A short write is what a full disk gives before it gives an error. */
async function writeAt(handle: FileHandle, text: string, position: number): Promise<number> {
  const bytes = Buffer.from(text, 'utf8');
  let written = 0;
  while (written < bytes.length) {
    const { bytesWritten } = await handle.write(bytes, written, bytes.length - written, position + written);
    written += bytesWritten;
  }
  return bytes.length;
}
