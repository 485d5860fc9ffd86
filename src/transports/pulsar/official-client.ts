// The part of the official `pulsar-client` that is used here, as types of our own: the package is an optional peer, and a
// declaration that imported it would not compile without it. Also how it is loaded, and what is said when it is not there.
import { PulseworkError, toError } from '../../core/errors.js';

export interface OfficialMessageId {
  serialize(): Uint8Array;
  toString(): string;
}

export interface OfficialMessage {
  getTopicName(): string;
  /** An array with named fields; it throws where a property is called `length` and its value is no length. */
  getProperties(): unknown;
  getData(): Uint8Array;
  getMessageId(): OfficialMessageId;
  getPublishTimestamp(): number;
  getEventTimestamp(): number;
  getRedeliveryCount(): number;
  getPartitionKey(): string;
  getOrderingKey(): string;
  getProducerName(): string;
}

export interface OfficialConsumer {
  /** Only without an argument: with one it blocks a thread of the pool that file access needs, or for ever. */
  receive(): Promise<OfficialMessage>;
  acknowledgeId(id: OfficialMessageId): Promise<unknown>;
  acknowledgeCumulativeId(id: OfficialMessageId): Promise<unknown>;
  negativeAcknowledgeId(id: OfficialMessageId): void;
  seek(id: OfficialMessageId): Promise<unknown>;
  seekTimestamp(epochMs: number): Promise<unknown>;
  isConnected(): boolean;
  close(): Promise<unknown>;
}

export interface OfficialProducer {
  send(message: OfficialOutgoingMessage): Promise<OfficialMessageId>;
  flush(): Promise<unknown>;
  close(): Promise<unknown>;
}

export interface OfficialOutgoingMessage {
  data: Buffer;
  properties: Record<string, string>;
  sequenceId: number;
  partitionKey?: string;
  orderingKey?: string;
  eventTimestamp?: number;
  deliverAt?: number;
}

/** What `subscribe` is given here: no listener, no dead letter policy, no pattern. */
export interface OfficialConsumerConfig {
  topic: string;
  subscription: string;
  subscriptionType: 'Exclusive' | 'Failover' | 'Shared' | 'KeyShared';
  subscriptionInitialPosition: 'Earliest' | 'Latest';
  receiverQueueSize: number;
  consumerName?: string;
  nAckRedeliverTimeoutMs: number;
  ackTimeoutMs: number;
  batchIndexAckEnabled: boolean;
}

export interface OfficialProducerConfig {
  topic: string;
  producerName?: string;
  sendTimeoutMs: number;
  maxPendingMessages: number;
  batchingEnabled: false;
  blockIfQueueFull: false;
  messageRoutingMode: 'RoundRobinDistribution';
  hashingScheme: 'JavaStringHash' | 'Murmur3_32Hash';
  compressionType: 'None' | 'Zlib' | 'LZ4' | 'ZSTD' | 'SNAPPY';
}

export interface OfficialClient {
  subscribe(config: OfficialConsumerConfig): Promise<OfficialConsumer>;
  createProducer(config: OfficialProducerConfig): Promise<OfficialProducer>;
  getPartitionsForTopic(topic: string): Promise<string[]>;
  close(): Promise<unknown>;
}

/** What `import('pulsar-client')` gives. */
export interface OfficialModule {
  // oxlint-disable-next-line typescript/no-explicit-any -- the package's own type is a union that nobody here builds by hand
  readonly Client: (new (config: any) => OfficialClient) & {
    setLogHandler(handler: (level: number, file: string, line: number, message: string) => void): void;
  };
  readonly MessageId: {
    earliest(): OfficialMessageId;
    latest(): OfficialMessageId;
    deserialize(bytes: Buffer): OfficialMessageId;
  };
  readonly AuthenticationToken: new (parameters: { token: string | (() => Promise<string>) }) => object;
  readonly AuthenticationTls: new (parameters: { certificatePath: string; privateKeyPath: string }) => object;
  readonly AuthenticationBasic: new (parameters: { username: string; password: string }) => object;
  readonly AuthenticationOauth2: new (parameters: {
    type: string;
    issuer_url: string;
    client_id?: string;
    client_secret?: string;
    private_key?: string;
    audience?: string;
    scope?: string;
  }) => object;
}

/** By class: the static functions that are called here, and the methods. */
const NEEDED: Readonly<Record<string, { readonly own: readonly string[]; readonly methods: readonly string[] }>> = {
  Client: { own: ['setLogHandler'], methods: ['subscribe', 'createProducer', 'getPartitionsForTopic', 'close'] },
  MessageId: { own: ['earliest', 'latest', 'deserialize'], methods: [] },
  AuthenticationToken: { own: [], methods: [] },
  AuthenticationTls: { own: [], methods: [] },
  AuthenticationBasic: { own: [], methods: [] },
  AuthenticationOauth2: { own: [], methods: [] },
};

/** What is not there of all that is used here, e.g. `MessageId.earliest`: a function that is missing fails in the middle. */
export function missingInModule(value: unknown): readonly string[] {
  const module = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  return Object.entries(NEEDED).flatMap(([name, { own, methods }]) => {
    const given = module[name];
    if (typeof given !== 'function') return [name];
    const { prototype } = given as { readonly prototype?: unknown };
    const of = (object: unknown, field: string): unknown => (object as Record<string, unknown> | undefined)?.[field];
    return [
      ...own.filter((field) => typeof of(given, field) !== 'function').map((field) => `${name}.${field}`),
      ...methods.filter((field) => typeof of(prototype, field) !== 'function').map((field) => `${name}#${field}`),
    ];
  });
}

const PACKAGE = 'pulsar-client';

/**
 * Loads the package. @param load for tests: what `import` would do.
 * @throws PulseworkError PEER_NOT_INSTALLED when it is not there, PEER_NOT_LOADABLE when it is but its addon is not.
 */
export async function loadOfficialModule(load: () => Promise<unknown> = importPackage): Promise<OfficialModule> {
  let loaded: unknown;
  try {
    loaded = await load();
  } catch (error) {
    throw notLoaded(toError(error));
  }
  // CommonJS: the exports may stand under `default` only.
  const found = [loaded, (loaded as { readonly default?: unknown } | undefined)?.default];
  const module = found.find((candidate) => missingInModule(candidate).length === 0);
  if (module !== undefined) return module as OfficialModule;
  const missing = found.map(missingInModule).sort((a, b) => a.length - b.length)[0] ?? [];
  const text = `"${PACKAGE}" was loaded, but has no ${missing.join(', ')}: install version 1.18 or a later 1.x`;
  throw new PulseworkError('PEER_NOT_LOADABLE', text);
}

function importPackage(): Promise<unknown> {
  return import('pulsar-client');
}

function notLoaded(cause: Error): PulseworkError {
  const { code } = cause as { readonly code?: unknown };
  const isMissing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
  // Its own files are found by path: only then does the message name the package alone.
  if (isMissing && /Cannot find (package|module) 'pulsar-client'/.test(cause.message)) {
    const text = `"pulsework/pulsar" needs the package "${PACKAGE}": npm install ${PACKAGE}`;
    return new PulseworkError('PEER_NOT_INSTALLED', text, { cause });
  }
  const remedy =
    'its native part is missing or was made for another system: install it again with its install script allowed (npm rebuild pulsar-client), or use "pulsework/wire", which has none';
  return new PulseworkError('PEER_NOT_LOADABLE', `"${PACKAGE}" is installed but could not be loaded: ${remedy}`, {
    cause,
  });
}
