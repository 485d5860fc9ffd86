// The folder of one broker: its settings, data, log and process id. What a run left behind that could not clean up
// (killed, machine off) is found here and removed by the next one.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { isAlive, isProcess } from './processes.js';

/** Folders are named after the process that owns them, so that none exists whose owner is unknown. */
const OWNED = /^owned-by-(\d+)-/;

/** A process with some hundred MB is gone within half a second of its kill. */
const KILL_LIMIT_MS = 5_000;

/** How many characters from the end of a log an error shows. */
const LOG_TAIL = 4_000;

export class BrokerFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** A new one in the system's temporary folder, owned by this process. */
  static create(): BrokerFolder {
    mkdirSync(runsFolder(), { recursive: true, mode: 0o700 });
    return new BrokerFolder(mkdtempSync(join(runsFolder(), `owned-by-${process.pid}-`)));
  }

  get settingsFile(): string {
    return join(this.path, 'standalone.conf');
  }

  get logFile(): string {
    return join(this.path, 'broker.log');
  }

  get bookieFolder(): string {
    return join(this.path, 'bookie');
  }

  get metadataFolder(): string {
    return join(this.path, 'metadata');
  }

  /** In the command line of this folder's broker, and of no other process. */
  get mark(): string {
    return `-Dpulsework.folder=${this.path} `;
  }

  /** The broker that runs on this folder, if one does. */
  get runningPid(): number | undefined {
    const pid = Number(readIfThere(this.#pidFile));
    return pid > 0 && isProcess(pid, this.mark) ? pid : undefined;
  }

  rememberPid(pid: number): void {
    writeFileSync(this.#pidFile, String(pid));
  }

  logTail(): string {
    return readIfThere(this.logFile).slice(-LOG_TAIL);
  }

  /** Kills the broker if one runs, and removes everything. Synchronous, so that it also works while a process exits. */
  removeWithBroker(): void {
    const pid = this.runningPid;
    if (pid !== undefined) {
      process.kill(pid, 'SIGKILL');
      // What is being killed may still write: gone first, then removed.
      for (let waited = 0; waited < KILL_LIMIT_MS && this.runningPid === pid; waited += 20) pause(20);
    }
    rmSync(this.path, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  get #pidFile(): string {
    return join(this.path, 'broker.pid');
  }
}

/** Removes the brokers and folders of runs that are over. */
export function removeLeftBehind(): void {
  if (!existsSync(runsFolder())) return;
  for (const name of readdirSync(runsFolder())) {
    const owner = Number(OWNED.exec(name)?.[1]);
    if (owner > 0 && !isAlive(owner)) new BrokerFolder(join(runsFolder(), name)).removeWithBroker();
  }
}

/** Without giving way to anything else: the process may be exiting. */
function pause(durationMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);
}

function runsFolder(): string {
  return join(tmpdir(), `pulsework-pulsar-${userInfo().username}`);
}

function readIfThere(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}
