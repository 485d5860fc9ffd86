// A real Pulsar 4.0.7 for tests: starts one on fresh data, gives its addresses, and breaks it on request.
// It ends with the process that started it, however that ends.
import { mkdirSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { brokerClassPath, javaPrograms } from './artifacts.js';
import { BrokerFolder, removeLeftBehind } from './broker-folder.js';
import { BrokerProcess, BrokerStartError } from './broker-process.js';
import type { BrokerLaunch } from './broker-process.js';
import { brokerSettings } from './broker-settings.js';
import type { BrokerPorts, BrokerSettingsOptions, ProxyPorts } from './broker-settings.js';
import { freePorts } from './free-ports.js';
import { PulsarAdmin } from './pulsar-admin.js';

export interface PulsarOptions extends BrokerSettingsOptions {
  /** How many proxies can stand in front of the broker at once, see `faulty-proxy.ts`. @default 4 */
  readonly proxies?: number | undefined;
  /** Megabytes of heap, and again of direct memory. @default 320; 512 for runs of many minutes */
  readonly memoryMb?: number | undefined;
}

/** What a broker can be started with besides: only `npm run pulsar:up` needs it. */
export interface PulsarPlacement {
  /** @default a temporary folder that goes with the broker */
  readonly folder?: BrokerFolder | undefined;
  /** Whether the broker stays when this process ends. @default false */
  readonly outlives?: boolean | undefined;
}

/** Ports are chosen before they are bound, so another process can be quicker. */
const PORT_TRIES = 3;
const DEFAULT_PROXIES = 4;
/** Enough for the gate's suites side by side, with messages of 6 MB cut into chunks. */
const DEFAULT_MEMORY_MB = 320;

/** Starts a broker on data of its own. Takes 10 to 20 s; the first time on a machine Maven downloads 145 MB of jars. */
export async function startPulsar(options: PulsarOptions = {}, placement: PulsarPlacement = {}): Promise<RealPulsar> {
  removeLeftBehind();
  const classPath = await brokerClassPath();
  const programs = await javaPrograms(classPath);
  for (let tries = 1; ; tries += 1) {
    const folder = placement.folder ?? BrokerFolder.create();
    const ports = await choosePorts(options.proxies ?? DEFAULT_PROXIES);
    const launch: BrokerLaunch = {
      folder,
      classPath,
      programs,
      adminUrl: `http://127.0.0.1:${ports.web}`,
      memoryMb: options.memoryMb ?? DEFAULT_MEMORY_MB,
      outlives: placement.outlives ?? false,
    };
    try {
      mkdirSync(folder.path, { recursive: true });
      writeFileSync(folder.settingsFile, brokerSettings(ports, options));
      return new RealPulsar(launch, ports, options, await startGuarded(launch));
    } catch (error) {
      folder.removeWithBroker();
      if (tries === PORT_TRIES || !(error instanceof BrokerStartError && error.portTaken)) throw error;
    }
  }
}

export class RealPulsar {
  readonly serviceUrl: string;
  readonly adminUrl: string;
  readonly proxies: readonly ProxyPorts[];
  readonly admin: PulsarAdmin;
  readonly #launch: BrokerLaunch;
  readonly #settingsOfRestarts: (transactions: boolean) => string;
  #process: BrokerProcess;

  constructor(launch: BrokerLaunch, ports: BrokerPorts, options: BrokerSettingsOptions, process: BrokerProcess) {
    this.#launch = launch;
    this.#settingsOfRestarts = (transactions) => brokerSettings(ports, { ...options, transactions });
    this.#process = process;
    this.serviceUrl = `pulsar://127.0.0.1:${ports.broker}`;
    this.adminUrl = launch.adminUrl;
    this.proxies = ports.proxies;
    this.admin = new PulsarAdmin(launch.adminUrl);
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Where its data and log are. */
  get folder(): string {
    return this.#launch.folder.path;
  }

  /** `kill -9`: nothing is told to anyone, the data stay. */
  async kill(): Promise<void> {
    await this.#process.kill();
  }

  /** A clean end; the data stay. Takes 7 to 10 s. */
  async terminate(): Promise<void> {
    await this.#process.terminate();
  }

  /**
   * Starts again on the same data and ports, after `kill`, after `terminate` or, killing it first, while it runs.
   * @param options.transactions on old data they stall a namespace for 30 s. @default false, also where it had them
   */
  async restart({ transactions = false }: { readonly transactions?: boolean } = {}): Promise<void> {
    await this.#process.kill();
    writeFileSync(this.#launch.folder.settingsFile, this.#settingsOfRestarts(transactions));
    this.#process = await startGuarded(this.#launch);
  }

  /** SIGSTOP: connections stay open and nothing answers. */
  freeze(): void {
    this.#process.signal('SIGSTOP');
  }

  thaw(): void {
    this.#process.signal('SIGCONT');
  }

  /** Resolves once the broker goes on. */
  async freezeFor(durationMs: number): Promise<void> {
    this.freeze();
    try {
      await sleep(durationMs);
    } finally {
      this.thaw();
    }
  }

  logTail(): string {
    return this.#launch.folder.logTail();
  }

  /** Ends the broker and removes its data. */
  async stop(): Promise<void> {
    await this.#process.kill();
    this.#launch.folder.removeWithBroker();
  }
}

/** Starts the process and sees to it that nothing of it stays when this process ends, unless it shall. */
async function startGuarded(launch: BrokerLaunch): Promise<BrokerProcess> {
  if (!launch.outlives) guard(launch.folder);
  return BrokerProcess.start(launch);
}

const guarded = new Set<BrokerFolder>();

/** An end that lets nothing run (`kill -9`) is noticed by the broker itself, and its folder by the next run. */
function guard(folder: BrokerFolder): void {
  const first = guarded.size === 0;
  guarded.add(folder);
  if (!first) return;
  const removeAll = (): void => guarded.forEach((each) => each.removeWithBroker());
  process.once('exit', removeAll);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      removeAll();
      // With nobody else to act on it, the signal ends the process as if it had never been caught.
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
    });
  }
}

async function choosePorts(proxies: number): Promise<BrokerPorts> {
  const [broker, web, ...rest] = await freePorts(2 + 2 * proxies);
  return {
    broker: broker!,
    web: web!,
    proxies: Array.from({ length: proxies }, (_, index) => ({ proxy: rest[2 * index]!, behind: rest[2 * index + 1]! })),
  };
}
