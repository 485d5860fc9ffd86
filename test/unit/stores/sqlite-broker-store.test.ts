// The place of a durable broker: who may open it, what is refused by name, what an older version left, and what a call says
// before and after.
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedBroker, embedded } from 'pulsework/embedded';
import type { DurableBrokerStore, SqliteDatabase } from 'pulsework/sqlite';
import { NO_ENTRY, sqliteMetadataStore, sqliteStore } from 'pulsework/sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MIGRATIONS } from '../../../src/stores/sqlite/sqlite-format.js';
import { systemClock } from '../../../src/system/system-clock.js';
import { ROOT } from '../../architecture/source-files.js';
import { bundledProgram } from '../../support/bundled-program.js';
import { message } from '../../support/durable/durable-world.js';
import { sqliteDrivers } from '../../support/metadata-places.js';

/** A user that may nothing. */
const NOBODY = 65_534;
const driver = sqliteDrivers['libsql'];

let folder: string;
let dir: string;
let path: string;
let child: ChildProcess | undefined;
const stores: DurableBrokerStore[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pulsework-broker-'));
  dir = join(folder, 'broker');
  path = join(dir, 'broker.db');
});

afterEach(async () => {
  child?.kill('SIGKILL');
  child = undefined;
  for (const store of stores.splice(0)) await store.close();
  rmSync(folder, { recursive: true });
});

function newStore(): DurableBrokerStore {
  const store = sqliteStore({ dir, driver, busyTimeoutMs: 50 });
  stores.push(store);
  return store;
}

/** A broker with a message that nobody has acknowledged, closed again. */
async function brokerWithAMessage(): Promise<void> {
  const transport = embedded({ store: sqliteStore({ dir, driver }) });
  await (await transport.publisher('orders', { initialSubscription: 's' })).close();
  await transport.broker.publish('orders', message('kept'));
  await transport.close();
}

async function entriesOf(store: DurableBrokerStore): Promise<readonly string[]> {
  const { topics } = await store.open();
  const entries = topics.flatMap(({ ledgers }) => ledgers.flatMap((ledger) => ledger.entries));
  return entries.map((entry) => new TextDecoder().decode(entry?.messages[0]?.payload ?? undefined));
}

/** Changes the file behind the back of the store. */
function change(act: (database: SqliteDatabase) => void): void {
  const database = new driver!(path);
  act(database);
  database.close();
}

describe('the folder', () => {
  it('is made, for this user alone, but not what is above it', async () => {
    await newStore().open();
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    expect(statSync(path).mode & 0o777).toBe(0o600);

    const below = sqliteStore({ dir: join(folder, 'not', 'there'), driver });
    await expect(below.open()).rejects.toMatchObject({
      code: 'STORE_NOT_WRITABLE',
      message: expect.stringContaining(join(folder, 'not', 'there')) as string,
    });
  });

  it('is refused where it is a file', async () => {
    writeFileSync(dir, '');
    await expect(newStore().open()).rejects.toMatchObject({ code: 'STORE_NOT_WRITABLE' });
  });

  it('is refused by name where it may not be written, and what it holds is there when it may', async () => {
    await brokerWithAMessage();
    chmodSync(folder, 0o755);
    chmodSync(dir, 0o555);
    const run = await bundledProgram('test/support/durable/open-broker.ts');
    const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
    const { stdout } = spawnSync(process.execPath, [...run, dir], { cwd: ROOT, encoding: 'utf8', ...user });
    expect(JSON.parse(stdout)).toMatchObject({
      code: 'STORE_NOT_WRITABLE',
      message: expect.stringContaining(path) as string,
    });

    chmodSync(dir, 0o700);
    expect(await entriesOf(newStore())).toEqual(['kept']);
  });

  it('belongs to one broker: another one is told so, in this process and in others, until that one is killed', async () => {
    const run = await bundledProgram('test/support/durable/durable-load.ts');
    const args = [...run, dir, join(folder, 'told'), '1'];
    child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout!, 'data');
    const refused = {
      code: 'STORE_LOCKED',
      message: expect.stringMatching(/broker\.db.*another process has it for itself/) as string,
    };
    await expect(newStore().open()).rejects.toMatchObject(refused);
    const transport = embedded({ store: newStore() });
    await expect(transport.publisher('orders')).rejects.toMatchObject(refused);
    await expect(transport.publisher('orders')).rejects.toMatchObject(refused);

    const died = once(child, 'exit');
    child.kill('SIGKILL');
    await died;
    await transport.publisher('orders');
    await expect(newStore().open()).rejects.toMatchObject(refused);
    await transport.close();
    await newStore().open();
  });
});

it('one object of it belongs to one broker at a time: another transport that is given it is told so', async () => {
  const store = newStore();
  const [one, two] = [embedded({ store }), embedded({ store })];
  await one.publisher('orders');

  await expect(two.publisher('orders')).rejects.toMatchObject({
    code: 'STORE_LOCKED',
    message: expect.stringContaining('another broker of this process has it') as string,
  });
  await one.close();
});

describe('the file', () => {
  it('of an older version, with metadata alone, is brought up to date with what it holds', async () => {
    mkdirSync(dir);
    const old = sqliteMetadataStore({ path, driver });
    await old.open();
    await old.put('/kept', new Uint8Array([1]), { expectedVersion: NO_ENTRY });
    await old.close();
    const broker = ['number', 'partitions', 'topic', 'ledger', 'block', 'sequence', 'cursor', 'acked', 'acked_part'];
    change((database) => {
      for (const name of broker) database.exec(`DROP TABLE broker_${name}`);
      for (const { name } of tablesBehind(database)) database.exec(`DROP TABLE ${name}`);
      database.exec('PRAGMA user_version = 1');
    });

    const store = newStore();
    expect(await store.open()).toEqual({ lastLedgerId: 0, partitions: new Map(), topics: [] });
    expect([...((await store.metadata.get('/kept'))?.value ?? [])]).toEqual([1]);
  });

  it('of a newer version is refused with both versions, and stays as it is', async () => {
    await brokerWithAMessage();
    change((database) => database.exec(`PRAGMA user_version = ${MIGRATIONS.length + 1}`));
    await expect(newStore().open()).rejects.toMatchObject({
      code: 'STORE_FORMAT_UNKNOWN',
      message: expect.stringContaining(
        `broker.db": it has version ${MIGRATIONS.length + 1}, this program reads up to version ${MIGRATIONS.length}`,
      ) as string,
    });

    change((database) => database.exec(`PRAGMA user_version = ${MIGRATIONS.length}`));
    expect(await entriesOf(newStore())).toEqual(['kept']);
  });

  it.each([
    ['is no database', () => writeFileSync(path, 'x'.repeat(10_000))],
    ['holds an entry that is cut', () => change((db) => db.exec("UPDATE broker_block SET entries = x'00'"))],
    [
      'holds an entry with a flag that is not known',
      () => change((db) => db.exec("UPDATE broker_block SET entries = CAST(x'f0' || substr(entries, 2) AS BLOB)")),
    ],
    ['holds a name that is none', () => change((db) => db.exec("UPDATE broker_cursor SET name = 'x'"))],
  ])('that %s is named, and not written to', async (_, damage) => {
    await brokerWithAMessage();
    damage();
    const before = statSync(path).size;

    await expect(newStore().open()).rejects.toMatchObject({
      code: 'STORE_FORMAT_UNKNOWN',
      message: expect.stringContaining(path) as string,
    });
    expect(statSync(path).size).toBe(before);
  });
});

describe('a broker on such a store', () => {
  const newBroker = (): EmbeddedBroker => new EmbeddedBroker({ clock: systemClock, store: newStore() });

  it('can do nothing before it is open and after it was closed, and says so', async () => {
    const broker = newBroker();
    expect(broker.isOpen).toBe(false);
    expect(() => broker.topics()).toThrow(expect.objectContaining({ code: 'ILLEGAL_STATE' }));
    await expect(broker.publish('orders', message('a'))).rejects.toMatchObject({
      code: 'ILLEGAL_STATE',
      message: expect.stringMatching(/broker\.db is not open.*await broker\.open\(\)/) as string,
    });

    await Promise.all([broker.open(), broker.open()]);
    await broker.publish('orders', message('a'));
    await Promise.all([broker.close(), broker.close()]);
    expect(() => broker.topics()).toThrow(expect.objectContaining({ code: 'ALREADY_CLOSED' }));
    await expect(broker.open()).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
  });

  it('stores what was published before it was closed, awaited or not', async () => {
    const broker = newBroker();
    await broker.open();
    const publishing = ['a', 'b', 'c'].map((text) => broker.publish('orders', message(text)));
    broker.createSubscription('orders', 's');
    await broker.close();
    expect(await Promise.all(publishing)).toHaveLength(3);

    const again = newBroker();
    await again.open();
    expect(again.stats('orders')).toMatchObject({ entries: 3 });
    await again.close();
  });

  it('has metadata in the same file, which go with it', async () => {
    const store = newStore();
    const broker = new EmbeddedBroker({ clock: systemClock, store });
    await broker.open();
    await store.metadata.put('/a', new Uint8Array());
    await broker.close();
    await expect(store.metadata.get('/a')).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });

    const next = newStore();
    await next.open();
    expect(await next.metadata.get('/a')).toBeDefined();
  });
});

it('all that is wrong with the options is said at once', () => {
  const options = { dir: '', driver: 'libsql', bussyTimeoutMs: 1 } as never;
  expect(() => sqliteStore(options)).toThrow(/"busyTimeoutMs"\?[^]*"dir" must be[^]*"driver" must be/);
  expect(() => sqliteStore('/var/lib/broker' as never)).toThrow(/\{ dir: "\/var\/lib\/broker" \}/);
  expect(() => sqliteStore({} as never)).toThrow(/"dir"/);
});

interface Tables extends SqliteDatabase {
  prepare(sql: string): { all(): readonly { readonly name: string }[] };
}

/** Of versions behind the one with the broker's tables. */
function tablesBehind(database: SqliteDatabase): readonly { readonly name: string }[] {
  const known = "name LIKE 'metadata_%' OR name LIKE 'sqlite_%'";
  const sql = `SELECT name FROM sqlite_schema WHERE type = 'table' AND NOT (${known})`;
  return (database as Tables).prepare(sql).all();
}
