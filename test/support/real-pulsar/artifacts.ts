// What a real broker and the Java peer run from: jars that Maven puts into the user's repository, and the class files
// of the two small programs beside this file. Both are kept outside the clone, so that a fresh clone downloads nothing.
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, readdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runTool } from './processes.js';
import { withFileLock } from './file-lock.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const POM = join(HERE, 'pom.xml');
const JAVA_SOURCES = join(HERE, 'java');

/** Named with its version: the default version of a Maven goal depends on the installation. */
const CLASS_PATH_GOAL = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath';

/** A cold download takes about 80 s on an idle machine. */
const DOWNLOAD_LIMIT_MS = 900_000;
/** Compiling takes 7 to 10 s on a busy machine. */
const COMPILE_LIMIT_MS = 120_000;

/** Where this project keeps what can be made again. */
export function cacheFolder(): string {
  return join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'pulsework');
}

/** Why no broker can be started on this machine; undefined where one can. */
export async function missingTools(): Promise<string | undefined> {
  const tools = ['java', 'javac', 'mvn'];
  const found = await Promise.all(
    tools.map((tool) =>
      runTool(tool, ['-version']).then(
        () => true,
        () => false,
      ),
    ),
  );
  const missing = tools.filter((_, index) => found[index] === false);
  return missing.length === 0
    ? undefined
    : `no broker: ${missing.join(', ')} not found; Java 17 and Maven start one, PULSAR_URL names one`;
}

/** The class path of broker and client: Maven is asked only when the pom changed or a jar is gone. */
export async function brokerClassPath(): Promise<string> {
  const folder = join(cacheFolder(), `real-pulsar-${digestOf([await readFile(POM)])}`);
  const file = join(folder, 'class-path.txt');
  const known = await readClassPath(file);
  if (known !== undefined) return known;

  return withFileLock(join(folder, 'class-path.lock'), DOWNLOAD_LIMIT_MS, async () => {
    const madeMeanwhile = await readClassPath(file);
    if (madeMeanwhile !== undefined) return madeMeanwhile;
    const written = `${file}.${randomUUID()}`;
    await runTool('mvn', ['-q', '-B', '-f', POM, CLASS_PATH_GOAL, `-Dmdep.outputFile=${written}`], {
      limitMs: DOWNLOAD_LIMIT_MS,
    });
    await rename(written, file);
    const made = await readClassPath(file);
    if (made === undefined) throw new Error(`Maven wrote a class path to ${file} whose jars do not exist`);
    return made;
  });
}

/** The folder with the compiled programs of `java/`; compiled again only when one of them changed. */
export async function javaPrograms(classPath: string): Promise<string> {
  const sources = (await readdir(JAVA_SOURCES)).filter((name) => name.endsWith('.java')).sort();
  const paths = sources.map((name) => join(JAVA_SOURCES, name));
  const texts = await Promise.all(paths.map((path) => readFile(path)));
  const folder = join(cacheFolder(), `real-pulsar-programs-${digestOf([...texts, classPath])}`);
  if (existsSync(folder)) return folder;

  // Compiled beside its place and moved there whole: who finds the folder finds all of it.
  const unfinished = `${folder}.${randomUUID()}`;
  await mkdir(unfinished, { recursive: true });
  const flags = ['-J-XX:TieredStopAtLevel=1', '-proc:none', '-Xlint:-options', '--release', '17'];
  await runTool('javac', [...flags, '-cp', classPath, '-d', unfinished, ...paths], { limitMs: COMPILE_LIMIT_MS });
  await rename(unfinished, folder).catch(async (error: unknown) => {
    await rm(unfinished, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  });
  return folder;
}

async function readClassPath(file: string): Promise<string | undefined> {
  if (!existsSync(file)) return undefined;
  const classPath = (await readFile(file, 'utf8')).trim();
  const complete = classPath !== '' && classPath.split(delimiter).every((path) => existsSync(path));
  return complete ? classPath : undefined;
}

function digestOf(parts: readonly (Uint8Array | string)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex').slice(0, 12);
}
