// Processes of the harness: tools that run to their end, and what a process id stands for now. An id alone proves
// nothing, because systems use ids again.
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

export interface ToolOptions {
  /** @default 60000 */
  readonly limitMs?: number | undefined;
}

/** Runs a tool and gives its standard output. The error of a failed one ends with what the tool wrote. */
export function runTool(tool: string, args: readonly string[], options: ToolOptions = {}): Promise<string> {
  const { limitMs = 60_000 } = options;
  return new Promise((resolve, reject) => {
    execFile(
      tool,
      args,
      { timeout: limitMs, killSignal: 'SIGKILL', maxBuffer: 16 * 1024 * 1024 },
      (error, stdout, stderr) => {
        if (error === null) return resolve(stdout);
        const output = `${stdout}\n${stderr}`.trim().split('\n').slice(-30).join('\n');
        const how = error.killed === true ? `took longer than ${limitMs} ms` : `failed (${error.code ?? '?'})`;
        reject(new Error(`${tool} ${args[0] ?? ''} ${how}\n${output}`));
      },
    );
  });
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Whether the process runs and its command line holds `mark`, which only the process meant has. */
export function isProcess(pid: number, mark: string): boolean {
  return isAlive(pid) && commandLineOf(pid).includes(mark);
}

function commandLineOf(pid: number): string {
  try {
    if (existsSync('/proc/self/cmdline')) return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return execFileSync('ps', ['-ww', '-o', 'args=', '-p', String(pid)], { encoding: 'utf8' });
  } catch {
    return ''; // It has ended meanwhile.
  }
}
