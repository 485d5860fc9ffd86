// Certificates for tests, made in the run by openssl: an authority, and identities that are good or bad in one way.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Identity {
  /** PEM. */
  readonly cert: string;
  /** PEM, PKCS#8. */
  readonly key: string;
}

export interface IdentityOptions {
  /** The common name: who a client is. @default 'broker' */
  readonly name?: string | undefined;
  /** @default 'IP:127.0.0.1' */
  readonly alternativeName?: string | undefined;
  /** Below 0 it has run out. @default 2 */
  readonly days?: number | undefined;
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

export class TestAuthority {
  /** Its certificate, PEM. */
  readonly ca: string;
  readonly #folder = mkdtempSync(join(tmpdir(), 'pulsework-tls-'));

  constructor() {
    this.#openssl('req', '-x509', ...NEW_KEY, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=test');
    this.ca = this.#read('ca.pem');
  }

  /** A certificate of this authority. */
  issue({ name = 'broker', alternativeName = 'IP:127.0.0.1', days = 2 }: IdentityOptions = {}): Identity {
    writeFileSync(join(this.#folder, 'extensions'), `subjectAltName=${alternativeName}\n`);
    this.#openssl('req', ...NEW_KEY, '-keyout', 'new.key', '-out', 'new.csr', '-subj', `/CN=${name}`);
    const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', String(days)];
    this.#openssl('x509', '-req', '-in', 'new.csr', '-out', 'new.pem', ...signing, '-extfile', 'extensions');
    return { cert: this.#read('new.pem'), key: this.#read('new.key') };
  }

  /** One that nobody vouches for. */
  selfSigned(): Identity {
    const extension = ['-addext', 'subjectAltName=IP:127.0.0.1', '-addext', 'basicConstraints=critical,CA:FALSE'];
    const out = ['-keyout', 'self.key', '-out', 'self.pem', '-days', '2', '-subj', '/CN=broker', ...extension];
    this.#openssl('req', '-x509', ...NEW_KEY, ...out);
    return { cert: this.#read('self.pem'), key: this.#read('self.key') };
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #openssl(...args: string[]): void {
    execFileSync('openssl', args, { cwd: this.#folder, stdio: 'ignore' });
  }

  #read(name: string): string {
    return readFileSync(join(this.#folder, name), 'utf8');
  }
}
