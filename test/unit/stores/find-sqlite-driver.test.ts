// Which SQLite driver is taken where the user names none, and what is said when there is none.
import { expect, it } from 'vitest';
import { findSqliteDriver } from '../../../src/stores/sqlite/find-sqlite-driver.js';

class Works {
  exec(): void {}
  prepare(): void {}
  close(): void {}
}

class HasNoBinary extends Works {
  constructor() {
    super();
    throw new Error('Could not locate the bindings file');
  }
}

function missing(name: string): Error {
  return Object.assign(new Error(`Cannot find package '${name}' imported from here`), { code: 'ERR_MODULE_NOT_FOUND' });
}

const noSuchBuiltin = Object.assign(new Error('No such built-in module: node:sqlite'), {
  code: 'ERR_UNKNOWN_BUILTIN_MODULE',
});

/** Loads from what is given; a package that is not named is not installed. */
function loader(installed: Readonly<Record<string, unknown>>): (name: string) => Promise<unknown> {
  return async (name) => {
    if (installed[name] instanceof Error) throw installed[name];
    if (installed[name] !== undefined) return installed[name];
    throw name === 'node:sqlite' ? noSuchBuiltin : missing(name);
  };
}

it('takes the first that is there, better-sqlite3 before libsql before node:sqlite', async () => {
  const [first, second, third] = [class extends Works {}, class extends Works {}, class extends Works {}];
  const all = {
    'better-sqlite3': { default: first },
    libsql: { default: second },
    'node:sqlite': { DatabaseSync: third },
  };

  expect(await findSqliteDriver(loader(all))).toBe(first);
  expect(await findSqliteDriver(loader({ ...all, 'better-sqlite3': undefined }))).toBe(second);
  expect(await findSqliteDriver(loader({ 'node:sqlite': all['node:sqlite'] }))).toBe(third);
});

it('goes on to the next when one is installed but does not work', async () => {
  const installed = { 'better-sqlite3': { default: HasNoBinary }, libsql: { default: Works } };

  expect(await findSqliteDriver(loader(installed))).toBe(Works);
});

it('says what to install when there is none', async () => {
  await expect(findSqliteDriver(loader({}))).rejects.toMatchObject({
    code: 'PEER_NOT_INSTALLED',
    message: expect.stringContaining('npm install libsql') as string,
  });
});

it('says which does not work when none does, also when a file of its own is missing', async () => {
  const broken = { 'better-sqlite3': { default: HasNoBinary } };
  await expect(findSqliteDriver(loader(broken))).rejects.toMatchObject({
    code: 'PEER_NOT_LOADABLE',
    message: expect.stringContaining('"better-sqlite3" is installed but could not be loaded') as string,
  });

  const inside = { libsql: missing('@libsql/linux-x64-gnu') };
  await expect(findSqliteDriver(loader(inside))).rejects.toMatchObject({ code: 'PEER_NOT_LOADABLE' });
});

it('finds the one that this repository has', async () => {
  const Database = await findSqliteDriver();

  new Database(':memory:').close();
});
