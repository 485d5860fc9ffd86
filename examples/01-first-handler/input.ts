// Where the orders come from: a file or standard input, line by line. What is wrong with it is said in one sentence.
import { open } from 'node:fs/promises';
import type { Readable } from 'node:stream';

/** Something the user gave cannot be used; the message is meant for them. */
export class InputError extends Error {
  override readonly name = 'InputError';
}

/** @param path `-` is standard input. @throws InputError when it cannot be read. */
export async function openInput(path: string): Promise<Readable> {
  if (path === '-') return process.stdin;
  try {
    const file = await open(path);
    if ((await file.stat()).isFile()) return file.createReadStream();
    await file.close();
  } catch (error) {
    throw new InputError(`cannot read ${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
  throw new InputError(`cannot read ${path}: it is not a file`);
}

/** Lines that are not blank, with their numbers from 1. */
export async function* linesOf(input: Readable): AsyncGenerator<{ readonly number: number; readonly text: string }> {
  input.setEncoding('utf8');
  let number = 0;
  let rest = '';
  for await (const chunk of input as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const text of lines) {
      number += 1;
      if (text.trim() !== '') yield { number, text: text.trimEnd() };
    }
  }
  if (rest.trim() !== '') yield { number: number + 1, text: rest.trimEnd() };
}
