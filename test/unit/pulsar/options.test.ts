// Options of the adapter, and what is said when the package or its addon is missing.
import type * as RealModule from 'pulsar-client';
import { PulseworkError } from 'pulsework';
import type { SubscriptionSpec } from 'pulsework';
import { pulsar } from 'pulsework/pulsar';
import type { OfficialClient, OfficialModule, PulsarOptions } from 'pulsework/pulsar';
import { expect, it } from 'vitest';
import { safeTokenSupplier } from '../../../src/transports/pulsar/safe-callbacks.js';
import { loadOfficialModule } from '../../../src/transports/pulsar/official-client.js';
import { SILENT } from '../../support/pulsar-client-stand-in/message-kit.js';
import { turn } from '../../support/pulsar-client-stand-in/scripted-client.js';
import { pulsarClientStandIn } from '../../support/pulsar-client-stand-in/stand-in.js';

const serviceUrl = 'pulsar://localhost:6650';
const problemsOf = (options: unknown): readonly string[] => {
  try {
    pulsar(options as PulsarOptions);
    return [];
  } catch (error) {
    return (error as { readonly problems: readonly string[] }).problems;
  }
};

it('all problems are told at once, unknown options too (R11)', () => {
  const problems = problemsOf({
    serviceUrl: 'http://x',
    operationTimeoutMs: '30',
    ioThreads: 0,
    compression: 'gzip',
    keyHash: 'boost',
    maxPendingMesages: 5,
    tls: { validateHostname: 'yes', certificateFilePath: 'x' },
    authentication: { method: 'token', token: '' },
  });
  expect(problems.map((problem) => /"([\w.]+)"/.exec(problem)?.[1])).toEqual([
    'maxPendingMesages',
    'serviceUrl',
    'operationTimeoutMs',
    'ioThreads',
    'compression',
    'keyHash',
    'authentication.token',
    'tls.validateHostname',
    'tls',
    'tls.certificateFilePath',
  ]);
});

it('numbers that the addon would cut to 32 bits are refused (R11)', () => {
  const names = ['operationTimeoutMs', 'connectTimeoutMs', 'sendTimeoutMs', 'maxPendingMessages'] as const;
  for (const name of names) {
    expect(problemsOf({ serviceUrl, [name]: 2 ** 31 })).toEqual([expect.stringContaining(`"${name}" must be at most`)]);
    expect(problemsOf({ serviceUrl, [name]: 2 ** 31 - 1 })).toEqual([]);
  }
  expect(problemsOf({ serviceUrl, ioThreads: 1_001 })).toHaveLength(1);
});

it('a token supplier that fails gives its last token again, also where the logger throws (R11)', async () => {
  const thrower = (): never => {
    throw new Error('this logger throws');
  };
  const tokens = ['first', undefined];
  const supplier = safeTokenSupplier(() => tokens.shift() as string, { ...SILENT, warn: thrower });
  expect([await supplier(), await supplier()]).toEqual(['first', 'first']);
});

it('no secret is in a problem', () => {
  const authentication = { method: 'basic', username: 'me', password: 42, passwort: 'hunter2' };
  expect(JSON.stringify(problemsOf({ serviceUrl, authentication }))).not.toMatch(/hunter2|42/);
});

it.each([
  ['nothing', undefined],
  ['no service URL', {}],
  ['a client without methods', { client: {} }],
  ['a module that is none', { serviceUrl, module: {} }],
  ['an unknown method', { serviceUrl, authentication: { method: 'kerberos' } }],
  ['a logger without methods', { serviceUrl, logger: {} }],
])('%s is refused', (_, options) => {
  expect(problemsOf(options).length).toBeGreaterThan(0);
});

it('what a client was made with cannot be given beside it', () => {
  const client = { subscribe() {}, createProducer() {}, getPartitionsForTopic() {}, close() {} };
  expect(problemsOf({ client })).toEqual([]);
  expect(problemsOf({ client, serviceUrl, ioThreads: 2 })).toHaveLength(2);
});

/** Nothing connects: what is wrong is refused before. */
const spec: SubscriptionSpec = {
  topics: ['t'],
  subscription: 's',
  type: 'shared',
  initialPosition: 'earliest',
  prefetch: 1,
  consumerName: 'c',
};

it.each([
  ['a type in other letters', { type: 'Shared' }, 'CONFIGURATION_INVALID'],
  ['no topics', { topics: [] }, 'CONFIGURATION_INVALID'],
  ['a NUL in the subscription', { subscription: 'a\0b' }, 'CONFIGURATION_INVALID'],
  ['an unknown field', { deadLetterPolicy: {} }, 'CONFIGURATION_INVALID'],
  ['a malformed topic', { topics: ['persistent://a'] }, 'TOPIC_NAME_INVALID'],
  ['a NUL in the topic', { topics: ['a\0b'] }, 'NOT_SUPPORTED'],
  ['a prefetch of 0', { prefetch: 0 }, 'NOT_SUPPORTED'],
])('subscribe with %s never reaches the addon (R3, R11)', async (_, more, code) => {
  const standIn = pulsarClientStandIn();
  const transport = pulsar({ serviceUrl, module: standIn.module });
  await expect(transport.subscribe({ ...spec, ...more } as SubscriptionSpec)).rejects.toMatchObject({ code });
  await transport.close();
  expect([standIn.configs, standIn.violations]).toEqual([[], []]);
});

it.each([
  ['in the name of its subscription', { initialSubscription: 'a\0b' }],
  ['in its own name', { producerName: 'a\0b' }],
])('a publisher with a NUL %s never reaches the addon (R11)', async (_where, request) => {
  const standIn = pulsarClientStandIn();
  const transport = pulsar({ serviceUrl, module: standIn.module });
  const opening = transport.publisher('t', request);
  await expect(opening).rejects.toMatchObject({ code: 'CONFIGURATION_INVALID' });
  await transport.close();
  expect(standIn.configs).toEqual([]);
});

it('a closed transport opens nothing, also when it never opened anything; no client is made before it is needed (R12)', async () => {
  const standIn = pulsarClientStandIn();
  const transport = pulsar({ serviceUrl, module: standIn.module });
  await turn();
  expect(standIn.openClients()).toBe(0);
  await transport.close();
  await transport.close();
  await expect(transport.subscribe(spec)).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
  await expect(transport.publisher('t')).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
});

it('a client that was given stays open when the transport closes', async () => {
  let closed = 0;
  const client = {
    subscribe: () => Promise.reject(new Error('Failed to create consumer: ConsumerBusy')),
    createProducer: () => Promise.reject(new Error('Failed to create producer: ProducerBusy')),
    getPartitionsForTopic: (topic: string) => Promise.resolve([topic]),
    close: async () => void (closed += 1),
  } satisfies OfficialClient;
  const transport = pulsar({ client, module: pulsarClientStandIn().module });
  await expect(transport.subscribe(spec)).rejects.toMatchObject({ code: 'CONSUMER_BUSY' });
  await expect(transport.publisher('t')).rejects.toMatchObject({ code: 'PRODUCER_BUSY' });
  await transport.close();
  expect(closed).toBe(0);
});

const failing = (code: string, text: string) => () => Promise.reject(Object.assign(new Error(text), { code }));

it('a package that is not installed is told from one whose addon is not there (R12)', async () => {
  const missing = failing('ERR_MODULE_NOT_FOUND', "Cannot find package 'pulsar-client' imported from /app/x.js");
  await expect(loadOfficialModule(missing)).rejects.toMatchObject({
    code: 'PEER_NOT_INSTALLED',
    message: expect.stringContaining('npm install pulsar-client') as string,
  });
  const noAddon = failing('MODULE_NOT_FOUND', "Cannot find module '/app/pulsar-client/lib/binding/pulsar.node'");
  await expect(loadOfficialModule(noAddon)).rejects.toMatchObject({
    code: 'PEER_NOT_LOADABLE',
    message: expect.stringContaining('pulsework/wire') as string,
  });
  await expect(loadOfficialModule(() => Promise.resolve({}))).rejects.toMatchObject({ code: 'PEER_NOT_LOADABLE' });
});

it('a package that lacks a function is refused with its name, before anything fails in the middle (R12)', async () => {
  const { module } = pulsarClientStandIn();
  const statics = { latest: () => undefined, deserialize: () => undefined };
  const old = { ...module, MessageId: Object.assign(() => undefined, statics) };
  const message = expect.stringContaining('MessageId.earliest: install version 1.18') as string;
  await expect(loadOfficialModule(() => Promise.resolve({ default: old }))).rejects.toMatchObject({
    code: 'PEER_NOT_LOADABLE',
    message,
  });
  expect(problemsOf({ serviceUrl, module: { ...module, Client: class {} } })).toEqual([
    expect.stringContaining('Client.setLogHandler, Client#subscribe'),
  ]);
});

it('a package of CommonJS is found under its default export too', async () => {
  const { module } = pulsarClientStandIn();
  expect(await loadOfficialModule(() => Promise.resolve({ default: module }))).toBe(module);
});

it('without a module the package is loaded when it is first needed, and a failure says so by its code (R12)', async () => {
  const transport = pulsar({ serviceUrl: 'pulsar://localhost:1', operationTimeoutMs: 1_000 });
  const failure: unknown = await transport.publisher('t').catch((error: unknown) => error);
  // Where the addon loads, it is the broker that is missing.
  expect(failure).toBeInstanceOf(PulseworkError);
  expect(['PEER_NOT_LOADABLE', 'CONNECTION_LOST']).toContain((failure as PulseworkError).code);
  await transport.close();
});

it('the type of the package fits', () => {
  const fits = (real: typeof RealModule): OfficialModule => real;
  const client = (real: RealModule.Client): OfficialClient => real;
  expect([fits, client]).toHaveLength(2);
});
