// A real Prometheus of a test's own: scrapes one address each second, keeps its data in a temporary folder, ends with the
// test.
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from './real-pulsar/free-ports.js';

/** Why no Prometheus can be started here; undefined where one can. */
export function prometheusMissing(): string | undefined {
  if (spawnSync('prometheus', ['--version'], { stdio: 'ignore' }).status === 0) return undefined;
  const missing = 'not found: prometheus (of the Debian package of that name)';
  // The gate sets it: what is missing there is a failure, elsewhere a reason to skip.
  if (process.env['PULSEWORK_REQUIRE_PROMETHEUS'] === '1')
    throw new Error(`PULSEWORK_REQUIRE_PROMETHEUS is set, but ${missing}`);
  return missing;
}

export class Prometheus {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #url: string;

  private constructor(child: ChildProcess, folder: string, url: string) {
    this.#child = child;
    this.#folder = folder;
    this.#url = url;
  }

  /** @param target what to scrape, as `host:port` */
  static async start(target: string): Promise<Prometheus> {
    const [port] = await freePorts(1);
    const folder = mkdtempSync(join(tmpdir(), 'pulsework-prometheus-'));
    const config = join(folder, 'prometheus.yml');
    writeFileSync(
      config,
      `global: { scrape_interval: 1s, scrape_timeout: 1s }
scrape_configs:
  - job_name: pulsework
    static_configs: [{ targets: ['${target}'] }]
`,
    );
    const settings = {
      'config.file': config,
      'storage.tsdb.path': join(folder, 'data'),
      'web.listen-address': `127.0.0.1:${port}`,
      'log.level': 'error',
    };
    const args = Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
    const child = spawn('prometheus', args, { stdio: ['ignore', 'ignore', 'inherit'] });
    await once(child, 'spawn');
    return new Prometheus(child, folder, `http://127.0.0.1:${port}`);
  }

  /** Values of what an instant query finds now; NaN where it computes none. None while Prometheus still starts. */
  async query(expression: string): Promise<readonly number[]> {
    const found = await this.#get('/api/v1/query', { query: expression });
    const { result = [] } = (found ?? {}) as { readonly result?: readonly { readonly value: [number, string] }[] };
    return result.map(({ value: [, value] }) => Number(value));
  }

  async labelValues(label: string, selector: string): Promise<readonly string[]> {
    const found = await this.#get(`/api/v1/label/${label}/values`, { 'match[]': selector });
    return (found ?? []) as readonly string[];
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      // What it has stored is thrown away: it need not end in order.
      this.#child.kill('SIGKILL');
      await once(this.#child, 'exit');
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #get(path: string, parameters: Readonly<Record<string, string>>): Promise<unknown> {
    if (this.#child.exitCode !== null) throw new Error(`prometheus ended with ${this.#child.exitCode}`);
    const query = new URLSearchParams(parameters).toString();
    let response: Response;
    try {
      response = await fetch(`${this.#url}${path}?${query}`);
    } catch {
      return undefined; // It does not listen yet.
    }
    if (response.status === 503) return undefined; // It still reads its data.
    const answer = (await response.json()) as { readonly data?: unknown; readonly error?: string };
    if (answer.error !== undefined) throw new Error(`${parameters['query'] ?? path}: ${answer.error}`);
    return answer.data;
  }
}
