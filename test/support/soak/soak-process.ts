// Starts a soak in a process of its own and gives what it found, and whether the process ended by itself afterwards.
import { spawn } from 'node:child_process';
import { bundledProgram } from '../bundled-program.js';
import type { SoakResult, SoakSettings } from './soak-settings.js';

const PROGRAM = 'test/support/soak/soak-program.ts';
/** After its result, for a machine that is busy with other things. */
const EXIT_LIMIT_MS = 10_000;

/**
 * @param showProgress on this process's standard error
 * @param exitLimitMs what it may take to end by itself after its result
 */
export async function soakInProcess(
  settings: SoakSettings,
  showProgress: boolean,
  exitLimitMs = EXIT_LIMIT_MS,
): Promise<SoakResult> {
  const args = ['--expose-gc', ...(await bundledProgram(PROGRAM)), JSON.stringify(settings)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  return new Promise((resolve, reject) => {
    let stdout = '';
    let stderr = '';
    let limit: NodeJS.Timeout | undefined;
    let isOverdue = false;
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
      if (showProgress) process.stderr.write(text);
    });
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      limit ??= setTimeout(() => {
        isOverdue = true;
        child.kill('SIGKILL');
      }, exitLimitMs);
    });
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(limit);
      if (stdout === '') return reject(new Error(`the soak ended with ${code ?? signal} and no result: ${stderr}`));
      const { violations, facts } = JSON.parse(stdout) as SoakResult;
      const overdue = isOverdue ? [`the process had not ended ${exitLimitMs} ms after everything was closed`] : [];
      resolve({ violations: [...violations, ...overdue], facts });
    });
  });
}
