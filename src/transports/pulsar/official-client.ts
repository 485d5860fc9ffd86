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

/** What must be there before anything of it is used. */
export function isOfficialModule(value: unknown): value is OfficialModule {
  if (typeof value !== 'object' || value === null) return false;
  const { Client, MessageId } = value as Record<string, unknown>;
  return typeof Client === 'function' && typeof MessageId === 'function';
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
  const module = isOfficialModule(loaded) ? loaded : (loaded as { readonly default?: unknown } | undefined)?.default;
  if (isOfficialModule(module)) return module;
  throw new PulseworkError('PEER_NOT_LOADABLE', `"${PACKAGE}" was loaded, but has no Client and MessageId`);
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
