// Starts the outside clients: the Java one from the broker's own class path, the Python one from a virtual environment
// in the cache folder.
import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brokerClassPath, cacheFolder, javaPrograms } from './artifacts.js';
import { withFileLock } from './file-lock.js';
import { Peer } from './peer.js';
import { runTool } from './processes.js';
import { PulsarPeer } from './pulsar-peer.js';

const PYTHON_CLIENT = 'pulsar-client==3.13.0';
const PYTHON_PROGRAM = fileURLToPath(new URL('pulsar_peer.py', import.meta.url));
const LOG_SETTINGS = fileURLToPath(new URL('log4j2-peer.xml', import.meta.url));
const INSTALL_LIMIT_MS = 300_000;

export async function startJavaPeer(): Promise<PulsarPeer> {
  const classPath = await brokerClassPath();
  const programs = await javaPrograms(classPath);
  const memory = ['-Xmx128m', '-XX:MaxDirectMemorySize=128m'];
  const quickStart = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', `-Dlog4j.configurationFile=${LOG_SETTINGS}`];
  const program = ['-cp', [programs, classPath].join(delimiter), 'PulsarPeer'];
  return answering(new Peer('the Java peer', 'java', [...memory, ...quickStart, ...program]));
}

export async function startPythonPeer(): Promise<PulsarPeer> {
  return answering(new Peer('the Python peer', await pythonWithClient(), ['-u', PYTHON_PROGRAM]));
}

/** A peer that cannot start is a failure here, not at the first thing asked of it. */
async function answering(peer: Peer): Promise<PulsarPeer> {
  await peer.request('ping');
  return new PulsarPeer(peer);
}

/** The interpreter of an environment that has the client. */
async function pythonWithClient(): Promise<string> {
  const version = (await runTool('python3', ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'])).trim();
  const folder = join(cacheFolder(), `python-${version}-${PYTHON_CLIENT.replace('==', '-')}`);
  const python = join(folder, 'bin', 'python');
  const complete = join(folder, 'complete');
  if (existsSync(complete)) return python;

  return withFileLock(`${folder}.lock`, INSTALL_LIMIT_MS, async () => {
    if (existsSync(complete)) return python;
    await rm(folder, { recursive: true, force: true });
    await runTool('python3', ['-m', 'venv', folder], { limitMs: INSTALL_LIMIT_MS });
    const install = ['-m', 'pip', 'install', '--quiet', '--only-binary', ':all:', PYTHON_CLIENT];
    await runTool(python, install, { limitMs: INSTALL_LIMIT_MS });
    await writeFile(complete, '');
    return python;
  });
}
