// A real PostgreSQL for tests: fresh data in a temporary folder, one port of this machine only. Ends with the process that
// started it, however that ends.
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../real-pulsar/free-ports.js';

/** Where Debian puts each version; it is not on the path there. */
const DEBIAN = '/usr/lib/postgresql';
/** Whoever owns the data. PostgreSQL refuses to run as root; Debian's package brings the first one. */
const UNPRIVILEGED = ['postgres', 'nobody'];
/** A start takes 2 s on a busy machine. */
const START_LIMIT_S = 60;
/** A port is chosen before it is bound: another process can be quicker. */
const PORT_TRIES = 3;
const LOG_TAIL = 3_000;

/** What is confirmed need not survive this machine: nothing is forced to a disk. */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'off',
  full_page_writes: 'off',
  shared_buffers: '32MB',
  max_connections: 100,
};

/**
 * Runs until its input ends, which it does with this process. `folder`, the port and the settings are its arguments; the binaries are on
 * its path.
 */
const PROGRAM = `
  folder=$1 port=$2 settings=$3
  trap 'pg_ctl stop -D "$folder/data" -m immediate -s; cd /; rm -rf "$folder"' EXIT
  failed() { tail -c ${LOG_TAIL} "$folder/log"; exit 1; }
  initdb -D "$folder/data" -U postgres --pwfile="$folder/password" -A scram-sha-256 -E UTF8 --locale=C \\
    --no-sync --no-instructions > "$folder/log" 2>&1 || failed
  pg_ctl start -D "$folder/data" -w -t ${START_LIMIT_S} -l "$folder/log" -o "-p $port $settings" > /dev/null || failed
  echo ready
  cat > /dev/null
`;

interface User {
  readonly uid: number;
  readonly gid: number;
}

/** Why no PostgreSQL can be started here; undefined where one can. */
export function postgresMissing(): string | undefined {
  return binaries() === undefined
    ? 'no postgres: initdb not found; the Debian package "postgresql" has it, POSTGRES_URL names a server'
    : undefined;
}

export class PostgresServer {
  /** With the password of a user who may do everything. */
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.#child = child;
  }

  /** @param more settings, in place of those of tests */
  static async start(more: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
    for (let tries = 1; ; tries++) {
      const [port = 0] = await freePorts(1);
      try {
        return await PostgresServer.#startOn(port, more);
      } catch (error) {
        if (tries === PORT_TRIES || !/Address already in use/.test(String(error))) throw error;
      }
    }
  }

  static async #startOn(port: number, more: Readonly<Record<string, string>>): Promise<PostgresServer> {
    const user = unprivileged();
    // The folder of a user may be closed to others.
    const folder = mkdtempSync(join(user === undefined ? tmpdir() : '/tmp', 'pulsework-postgres-'));
    const password = randomBytes(12).toString('hex');
    writeFileSync(join(folder, 'password'), password, { mode: 0o644 });
    if (user !== undefined) chownSync(folder, user.uid, user.gid);
    const settings = Object.entries({ ...SETTINGS, ...more }).map(([name, value]) => `-c ${name}='${value}'`);
    const child = spawn('sh', ['-c', PROGRAM, 'sh', folder, String(port), settings.join(' ')], {
      ...user,
      cwd: folder,
      env: { PATH: [binaries(), process.env['PATH']].filter(Boolean).join(':'), LC_ALL: 'C' },
      // A group of its own: Ctrl-C in a terminal is for the test run, whose end then ends it.
      detached: true,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const said = await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
    if (String(said[0]) !== 'ready\n')
      throw new Error(`PostgreSQL did not start; its log ended with:\n${String(said[0])}`);
    // Neither process nor pipes keep the test run from ending.
    child.unref();
    (child.stdin as { unref?: () => void } | null)?.unref?.();
    (child.stdout as { unref?: () => void } | null)?.unref?.();
    return new PostgresServer(`postgres://postgres:${password}@127.0.0.1:${port}/postgres`, child);
  }

  async stop(): Promise<void> {
    this.#child.ref();
    const exited = once(this.#child, 'exit');
    this.#child.stdin?.end();
    await exited;
  }
}

/** The folder of `initdb` and `pg_ctl`, the newest version where there are several; empty where they are on the path. */
function binaries(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const found = versions.map((version) => join(DEBIAN, version, 'bin')).find((bin) => existsSync(join(bin, 'initdb')));
  if (found !== undefined) return found;
  return spawnSync('initdb', ['--version'], { stdio: 'ignore' }).status === 0 ? '' : undefined;
}

/** undefined where this process is not root. */
function unprivileged(): User | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of UNPRIVILEGED) {
    const ids = ['-u', '-g'].map((which) => spawnSync('id', [which, name], { encoding: 'utf8' }));
    if (ids.some(({ status }) => status !== 0)) continue;
    const [uid = 0, gid = 0] = ids.map(({ stdout }) => Number(stdout));
    return { uid, gid };
  }
  throw new Error(`PostgreSQL does not run as root, and this machine knows none of ${UNPRIVILEGED.join(', ')}`);
}
