// Service URLs: `pulsar://host[:port][,host[:port]…]` and `pulsar+ssl://…`.

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

export interface ServiceUrl {
  readonly tls: boolean;
  /** At least one. */
  readonly hosts: readonly HostPort[];
}

const PLAIN_PORT = 6650;
const TLS_PORT = 6651;

/** The URL, or the sentence that says what is wrong with it. */
export function parseServiceUrl(url: unknown): ServiceUrl | string {
  const match = typeof url === 'string' ? /^(pulsar|pulsar\+ssl):\/\/([^/?#@]+)\/?$/.exec(url) : null;
  if (match === null) return 'must be like "pulsar://host:6650" or "pulsar+ssl://host:6651"';
  const tls = match[1] === 'pulsar+ssl';
  const hosts = (match[2] ?? '').split(',').map((text) => parseHost(text.trim(), tls ? TLS_PORT : PLAIN_PORT));
  if (hosts.some((host) => host === undefined)) return 'has a host or a port that is not valid';
  return { tls, hosts: hosts as HostPort[] };
}

/** Where a broker says it, or another one, can be reached. Undefined when it names no usable address. */
export function advertisedHost(
  urls: { readonly plain?: string | undefined; readonly tls?: string | undefined },
  tls: boolean,
): HostPort | undefined {
  const parsed = parseServiceUrl(tls ? urls.tls : urls.plain);
  return typeof parsed === 'string' || parsed.tls !== tls ? undefined : parsed.hosts[0];
}

export function hostPortText({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function parseHost(text: string, defaultPort: number): HostPort | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s[\]]+))(?::(\d+))?$/.exec(text);
  if (match === null) return undefined;
  const port = match[3] === undefined ? defaultPort : Number(match[3]);
  const host = match[1] ?? match[2];
  return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port };
}
