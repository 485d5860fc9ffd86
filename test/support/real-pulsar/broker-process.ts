// One Java process that is a standalone broker: started on a folder, watched until it is ready, ended by its own id.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs';
import { delimiter } from 'node:path';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { BrokerFolder } from './broker-folder.js';

export interface BrokerLaunch {
  readonly folder: BrokerFolder;
  readonly classPath: string;
  /** The compiled programs of `java/`. */
  readonly programs: string;
  readonly adminUrl: string;
  /** Of heap, and again of direct memory. */
  readonly memoryMb: number;
  /** Whether the broker stays when this process ends. */
  readonly outlives: boolean;
}

/** Three times the slowest start seen on an overloaded machine (68 s). */
export const START_LIMIT_MS = 204_000;
/** A clean end took up to 10 s on a busy machine. */
const END_LIMIT_MS = 30_000;
const PROBE_LIMIT_MS = 5_000;
const PROBE_EVERY_MS = 100;

const READY_LINE = 'messaging service is ready';
const LOG_SETTINGS = fileURLToPath(new URL('log4j2-broker.xml', import.meta.url));

/** A start that failed. `portTaken` says that another try with other ports may work. */
export class BrokerStartError extends Error {
  readonly portTaken: boolean;

  constructor(what: string, folder: BrokerFolder) {
    const tail = folder.logTail();
    super(`${what}; its log ended with:\n${tail}`);
    this.name = 'BrokerStartError';
    this.portTaken = /Address already in use|BindException/.test(tail);
  }
}

export class BrokerProcess {
  readonly #child: ChildProcess;
  readonly #folder: BrokerFolder;

  private constructor(child: ChildProcess, folder: BrokerFolder) {
    this.#child = child;
    this.#folder = folder;
  }

  /** Resolves when the broker serves; a process that ends before is a failure with the end of its log. */
  static async start(launch: BrokerLaunch): Promise<BrokerProcess> {
    const { folder } = launch;
    mkdirSync(folder.path, { recursive: true });
    const log = openSync(folder.logFile, 'a');
    const logBefore = statSync(folder.logFile).size;
    const child = spawn('java', javaArguments(launch), {
      // A group of its own: Ctrl-C in a terminal is for the test run, which then ends the broker itself.
      detached: true,
      cwd: folder.path,
      stdio: [launch.outlives ? 'ignore' : 'pipe', log, log],
    });
    closeSync(log);
    const started = await Promise.race([once(child, 'spawn'), once(child, 'error')]);
    if (started[0] instanceof Error) throw started[0];
    folder.rememberPid(child.pid!);

    const broker = new BrokerProcess(child, folder);
    try {
      await broker.#ready(launch.adminUrl, logBefore);
    } catch (error) {
      await broker.kill();
      throw error;
    }
    // Neither process nor pipe keeps the test run from ending.
    child.unref();
    (child.stdin as { unref?: () => void } | null)?.unref?.();
    return broker;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  signal(name: NodeJS.Signals): void {
    if (!this.hasEnded) this.#child.kill(name);
  }

  /** `kill -9`, also of a frozen one. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** A clean end: the broker closes its topics and tells its clients. */
  async terminate(): Promise<void> {
    await this.#end('SIGTERM');
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (this.hasEnded) return;
    this.#child.ref();
    const ended = once(this.#child, 'exit');
    this.#child.kill(signal);
    const inTime = await Promise.race([ended.then(() => true), sleep(END_LIMIT_MS, false, { ref: false })]);
    if (inTime) return;
    this.#child.kill('SIGKILL');
    await ended;
  }

  async #ready(adminUrl: string, logBefore: number): Promise<void> {
    const giveUpAt = Date.now() + START_LIMIT_MS;
    while (Date.now() < giveUpAt) {
      if (this.hasEnded) throw new BrokerStartError(`the broker ended (${this.#howItEnded()})`, this.#folder);
      // Its own line first: health alone might be the answer of another broker on this port.
      if (this.#logSince(logBefore).includes(READY_LINE) && (await isHealthy(adminUrl))) return;
      await sleep(PROBE_EVERY_MS);
    }
    throw new BrokerStartError(`the broker was not ready within ${START_LIMIT_MS} ms`, this.#folder);
  }

  #logSince(offset: number): string {
    return readFileSync(this.#folder.logFile).subarray(offset).toString('latin1');
  }

  #howItEnded(): string {
    return this.#child.signalCode ?? `exit code ${this.#child.exitCode}`;
  }
}

/** Whether a broker answers there and finds itself well. */
export async function isHealthy(adminUrl: string): Promise<boolean> {
  try {
    const answer = await fetch(`${adminUrl}/admin/v2/brokers/health`, { signal: AbortSignal.timeout(PROBE_LIMIT_MS) });
    await answer.arrayBuffer();
    return answer.status === 200;
  } catch {
    return false; // Refused: not yet.
  }
}

function javaArguments(launch: BrokerLaunch): readonly string[] {
  const { folder, classPath, programs, memoryMb, outlives } = launch;
  return [
    '-XX:+UseSerialGC',
    '-XX:TieredStopAtLevel=1',
    `-Xmx${memoryMb}m`,
    `-XX:MaxDirectMemorySize=${memoryMb}m`,
    `-Dlog4j.configurationFile=${LOG_SETTINGS}`,
    `-Djava.io.tmpdir=${folder.path}`,
    `-Dpulsework.folder=${folder.path}`,
    `-Dpulsework.outlives=${outlives}`,
    ...['-cp', [programs, classPath].join(delimiter), 'OwnedBroker'],
    ...['--config', folder.settingsFile],
    ...['--bookkeeper-dir', folder.bookieFolder, '--metadata-dir', folder.metadataFolder],
    ...['--advertised-address', '127.0.0.1', '--no-functions-worker', '--no-stream-storage'],
  ];
}
