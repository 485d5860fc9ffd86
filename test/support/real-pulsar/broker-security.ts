// What makes a test broker ask who its clients are: TLS with a certificate of the run, and the roles that it knows by
// token, by password and by client certificate. Clients that say nothing may do everything, as on any other test broker.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TestAuthority } from '../test-certificates.js';
import { jwt } from '../token-server.js';
import { freePorts } from './free-ports.js';

const PROVIDERS = ['AuthenticationProviderToken', 'AuthenticationProviderBasic', 'AuthenticationProviderTls'];
const ANYBODY = 'anybody';

/** May do everything; any other role may do nothing. */
export const ADMIN = 'admin';

export class BrokerSecurity {
  /** For `standalone.conf`. Needs a broker without places for proxies, which have no TLS. */
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  readonly tlsUrl: string;
  readonly authority = new TestAuthority();
  readonly password = randomBytes(12).toString('hex');
  readonly #tokenSecret = randomBytes(32);
  readonly #folder = mkdtempSync(join(tmpdir(), 'pulsework-secured-'));

  private constructor(tlsPort: number) {
    const { cert, key } = this.authority.issue();
    this.tlsUrl = `pulsar+ssl://127.0.0.1:${tlsPort}`;
    this.settings = {
      authenticationEnabled: true,
      authorizationEnabled: true,
      authenticationProviders: PROVIDERS.map((name) => `org.apache.pulsar.broker.authentication.${name}`).join(','),
      anonymousUserRole: ANYBODY,
      superUserRoles: `${ADMIN},${ANYBODY}`,
      tokenSecretKey: dataUrl(this.#tokenSecret),
      basicAuthConf: dataUrl(this.#passwordFile()),
      // Looks for tokens that have run out that often, instead of each minute. A client has as long to answer with a new one.
      authenticationRefreshCheckSeconds: 3,
      brokerServicePortTls: tlsPort,
      tlsCertificateFilePath: this.#file('broker.pem', cert),
      tlsKeyFilePath: this.#file('broker.key', key),
      tlsTrustCertsFilePath: this.#file('ca.pem', this.authority.ca),
    };
  }

  static async create(): Promise<BrokerSecurity> {
    const [port = 0] = await freePorts(1);
    return new BrokerSecurity(port);
  }

  /** A token that the broker accepts. @param expiresAt seconds. */
  token(role: string, expiresAt?: number): string {
    return jwt({ sub: role, ...(expiresAt === undefined ? {} : { exp: expiresAt }) }, this.#tokenSecret);
  }

  remove(): void {
    this.authority.remove();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** As Apache's htpasswd writes it. */
  #passwordFile(): string {
    const hash = execFileSync('openssl', ['passwd', '-apr1', '-stdin'], { input: this.password, encoding: 'utf8' });
    return `${ADMIN}:${hash.trim()}\n`;
  }

  #file(name: string, content: string): string {
    const path = join(this.#folder, name);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  }
}

function dataUrl(content: Uint8Array | string): string {
  return `data:;base64,${Buffer.from(content).toString('base64')}`;
}
