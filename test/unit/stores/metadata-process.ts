// A process that works on a metadata store in a SQLite file, for tests of two processes and of sudden death.
// Arguments: what to do, the path of the file, then what that needs.
import { openSync, writeSync } from 'node:fs';
import type { MetadataStore } from 'pulsework/sqlite';
import { sqliteMetadataStore } from 'pulsework/sqlite';

const LANES = 8;
const [doing = '', path = '', ...rest] = process.argv.slice(2);
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const NOTHING = bytes('');

async function opened(exclusive = false): Promise<MetadataStore> {
  const store = sqliteMetadataStore({ path, exclusive, busyTimeoutMs: 200 });
  await store.open();
  return store;
}

/**
 * Writes until it is killed. Tells of each write once it is confirmed, and of a delete before it is asked for too.
 * Arguments: the file to tell to, the number of this run, and after how many lines to say `enough`.
 */
async function churn([tellTo = '', run = '', lines = '']: readonly string[]): Promise<void> {
  const told = openSync(tellTo, 'a');
  let left = Number(lines);
  // Synchronous: a line that was told has left this process.
  const tell = (line: string): void => {
    writeSync(told, `${line}\n`);
    left -= 1;
    if (left === 0) console.log('enough');
  };
  const store = await opened(true);
  const lane = async (number: number): Promise<void> => {
    for (let n = 0; ; n++) {
      const at = `/run-${run}/lane-${number}/${n}`;
      const version = await store.put(at, bytes('x'.repeat(n % 300)), { indexes: [{ index: 'all', key: at }] });
      tell(`is ${at} ${version}`);
      const appended = await store.append('/sequence', NOTHING);
      tell(`is ${appended.path} ${appended.version}`);
      if (n % 3 !== 0) continue;
      tell(`going ${at}`);
      await store.delete(at, { expectedVersion: version });
      tell(`gone ${at}`);
    }
  };
  await Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)));
}

/** Raises the counter so many times, together with whoever else does, and appends once in a while. */
async function raise([times = '']: readonly string[]): Promise<void> {
  const store = await opened();
  console.log('open');
  for (let done = 0; done < Number(times);) {
    const counter = await store.get('/counter');
    const next = bytes(String(Number(new TextDecoder().decode(counter?.value)) + 1));
    const raised = store.put('/counter', next, { expectedVersion: counter?.version ?? -1 });
    done += await raised.then(
      () => 1,
      () => 0,
    );
  }
  await store.append('/raised', NOTHING);
  await store.close();
}

/** Holds the file for itself until it is killed. */
async function hold(): Promise<void> {
  await opened(true);
  console.log('open');
  setInterval(() => undefined, 1_000_000);
}

/** Puts entries until one is refused, says why, and what is there then. */
async function fill([from = '']: readonly string[]): Promise<void> {
  const store = await opened();
  let confirmed = 0;
  try {
    for (; ; confirmed++) await store.put(`/fill/${from}/${confirmed}`, new Uint8Array(10_000));
  } catch (error) {
    console.log(JSON.stringify({ confirmed, code: (error as { code?: string }).code, message: String(error) }));
  }
  // Those of earlier runs too.
  const kept = await store.scan({ from: '/fill/', to: '/fill0' }).catch(() => undefined);
  console.log(JSON.stringify({ kept: kept?.length }));
  await store.close();
}

/** Opens, and says how that went. */
async function open(): Promise<void> {
  try {
    const store = await opened();
    await store.put('/opened', NOTHING);
    console.log('written');
    await store.close();
  } catch (error) {
    console.log(JSON.stringify({ code: (error as { code?: string }).code, message: String(error) }));
  }
}

const doings: Readonly<Record<string, (rest: readonly string[]) => Promise<void>>> = { churn, raise, hold, fill, open };
await doings[doing]?.(rest);
