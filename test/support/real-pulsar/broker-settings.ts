// The settings of a test broker: what differs from Pulsar's defaults, and why. One place, so that every suite says only
// what it needs on top.

export interface BrokerPorts {
  readonly broker: number;
  readonly web: number;
  /** One pair for each proxy that may stand in front: clients are sent to `proxy`, which connects to `behind`. */
  readonly proxies: readonly ProxyPorts[];
}

export interface ProxyPorts {
  readonly proxy: number;
  readonly behind: number;
}

export interface BrokerSettingsOptions {
  /** Only for the suite about transactions, and until a restart: see `RealPulsar.restart`. @default false */
  readonly transactions?: boolean | undefined;
  /** Any other key of `standalone.conf` (TLS, authentication, limits); also overrides what is set here. */
  readonly settings?: Readonly<Record<string, string | number | boolean>> | undefined;
}

const HOST = '127.0.0.1';

/** The text of a `standalone.conf`. */
export function brokerSettings(ports: BrokerPorts, options: BrokerSettingsOptions = {}): string {
  const settings = {
    ...BASE,
    ...listeners(ports),
    transactionCoordinatorEnabled: options.transactions ?? false,
    ...options.settings,
  };
  return Object.entries(settings)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('');
}

const BASE = {
  clusterName: 'standalone',
  bindAddress: HOST,
  allowLoopback: true,
  // One bookie.
  managedLedgerDefaultEnsembleSize: 1,
  managedLedgerDefaultWriteQuorum: 1,
  managedLedgerDefaultAckQuorum: 1,
  loadBalancerEnabled: false,
  functionsWorkerEnabled: false,
  webSocketServiceEnabled: false,
  // No fsync: what a process wrote survives its being killed all the same.
  journalSyncData: false,
  // The bookie's limit otherwise equals the largest message: an entry just below 5 MiB is then written again for ever.
  nettyMaxFrameSizeBytes: 5_253_120,
  dbStorage_writeCacheMaxSizeMb: 64,
  dbStorage_readAheadCacheMaxSizeMb: 32,
  managedLedgerCacheSizeMB: 64,
  systemTopicEnabled: true,
  topicLevelPoliciesEnabled: true,
  acknowledgmentAtBatchIndexLevelEnabled: true,
  // Without these a message delayed by 1 s arrives at once.
  delayedDeliveryTickTimeMillis: 100,
  isDelayedDeliveryDeliverAtTimeStrict: true,
  // Each receipted acknowledgement is on disk at once; with the default (once a second) a kill loses the last ones.
  managedLedgerDefaultMarkDeleteRateLimit: 0,
  brokerDeleteInactiveTopicsEnabled: false,
  forceDeleteNamespaceAllowed: true,
  forceDeleteTenantAllowed: true,
};

function listeners(ports: BrokerPorts): Record<string, string | number> {
  const plain = { brokerServicePort: ports.broker, webServicePort: ports.web };
  if (ports.proxies.length === 0) return { ...plain, advertisedAddress: HOST };
  // A lookup that comes in behind a proxy is answered with the proxy's address: no client option is needed.
  const advertised = ports.proxies.map(({ proxy }, index) => `proxy${index}:pulsar://${HOST}:${proxy}`);
  const bound = ports.proxies.map(({ behind }, index) => `proxy${index}:pulsar://${HOST}:${behind}`);
  return {
    ...plain,
    advertisedListeners: [`internal:pulsar://${HOST}:${ports.broker}`, ...advertised].join(','),
    internalListenerName: 'internal',
    bindAddresses: bound.join(','),
  };
}
