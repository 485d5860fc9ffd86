// Runs a TypeScript program in a process of its own, as a user would, and gives what it wrote and how it ended.
import { spawn } from 'node:child_process';
import { ROOT } from '../architecture/source-files.js';
import { bundledProgram } from './bundled-program.js';

export interface ProgramRun {
  readonly stdout: string;
  readonly stderr: string;
  /** A number, or the name of the signal that ended it. */
  readonly exit: number | NodeJS.Signals | null;
}

export interface ProgramOptions {
  readonly args?: readonly string[] | undefined;
  /** Written to standard input, which then ends; `open` leaves it open. @default nothing, and it ends */
  readonly input?: string | undefined;
  readonly inputStaysOpen?: boolean | undefined;
  /** The signal to send once `after` was seen on standard output. */
  readonly signal?: { readonly name: NodeJS.Signals; readonly after: string } | undefined;
  /** Of the program, on top of this process's. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** For the compiler. @default the tsconfig.json of this repository */
  readonly tsconfig?: string | undefined;
}

/** @param program path from the root of the repository, or an absolute one. */
export async function runProgram(program: string, options: ProgramOptions = {}): Promise<ProgramRun> {
  const { args = [], input = '', inputStaysOpen = false, signal, env = {}, tsconfig } = options;
  const run = await bundledProgram(program, tsconfig);
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...run, ...args], { cwd: ROOT, env: { ...process.env, ...env } });
    let stdout = '';
    let stderr = '';
    let signalled = false;
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk;
      if (signal === undefined || signalled || !stdout.includes(signal.after)) return;
      signalled = true;
      child.kill(signal.name);
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
    child.on('error', reject);
    child.on('close', (code, signalName) => resolve({ stdout, stderr, exit: code ?? signalName }));
    child.stdin.on('error', () => undefined); // The program may end without reading what it is given.
    child.stdin.write(input);
    if (!inputStaysOpen) child.stdin.end();
  });
}
