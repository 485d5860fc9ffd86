// The official client of one transport: loaded when first needed, made once, held until it is closed.
import { toError } from '../../core/errors.js';
import { hold, holdFirst, release } from './held-objects.js';
import type { OfficialClient, OfficialModule } from './official-client.js';
import { loadOfficialModule } from './official-client.js';
import { alreadyClosed, closeQuietly, transportError } from './official-errors.js';
import type { PulsarAuthentication, ResolvedPulsarOptions } from './pulsar-options.js';
import { listenToLog, safeTokenSupplier } from './safe-callbacks.js';

const LOG_LEVELS = { debug: 0, info: 1, warn: 2, error: 3 } as const;

export interface Official {
  readonly module: OfficialModule;
  readonly client: OfficialClient;
}

export class OfficialConnection {
  readonly #options: ResolvedPulsarOptions;
  #opening: Promise<Official> | undefined;
  #stopListening: () => void = () => undefined;
  #closed = false;

  constructor(options: ResolvedPulsarOptions) {
    this.#options = options;
  }

  /** @throws PulseworkError PEER_NOT_INSTALLED, PEER_NOT_LOADABLE; TransportError ALREADY_CLOSED. */
  open(): Promise<Official> {
    if (this.#closed) return Promise.reject(alreadyClosed('the pulsar transport'));
    // What failed is tried again: the package may have been installed meanwhile.
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw toError(error);
    });
    return this.#opening;
  }

  /** Closes the client that was made here; one that was given stays open. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const official = await this.#opening?.catch(() => undefined);
    if (official !== undefined && this.#options.client === undefined) {
      await closeQuietly(official.client.close(), 'closing the client').finally(() => release(official.client));
    } else if (official !== undefined) {
      release(official.client);
    }
    this.#stopListening();
  }

  async #open(): Promise<Official> {
    const { logger, client: given } = this.#options;
    const module = this.#options.module ?? (await loadOfficialModule());
    // Who brings a client has said where its lines go.
    if (logger !== undefined && given === undefined) this.#stopListening = listenToLog(module, logger);
    const client = given ?? this.#newClient(module);
    holdFirst(module, client);
    hold(client);
    return { module, client };
  }

  #newClient(module: OfficialModule): OfficialClient {
    try {
      return new module.Client(this.#config(module));
    } catch (error) {
      throw transportError('making the client', error);
    }
  }

  /** A new object for each client: the client writes into it. Absent options are left out: `undefined` is a value to it. */
  #config(module: OfficialModule): Record<string, unknown> {
    const { authentication, tls, ...options } = this.#options;
    const config: Record<string, unknown> = {
      serviceUrl: options.serviceUrl,
      operationTimeoutSeconds: Math.ceil(options.operationTimeoutMs / 1_000),
      connectionTimeoutMs: Math.ceil(options.connectTimeoutMs),
      ioThreads: options.ioThreads,
      listenerName: options.listenerName,
      logLevel: LOG_LEVELS[options.logLevel],
      tlsTrustCertsFilePath: tls.trustCertsFilePath,
      tlsCertificateFilePath: tls.certificateFilePath,
      tlsPrivateKeyFilePath: tls.privateKeyFilePath,
      tlsValidateHostname: tls.validateHostname ?? true,
      tlsAllowInsecureConnection: tls.allowInsecureConnection ?? false,
      authentication: authentication && this.#authenticationOf(module, authentication),
    };
    return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
  }

  #authenticationOf(module: OfficialModule, given: PulsarAuthentication): object {
    switch (given.method) {
      case 'token': {
        const { token } = given;
        const safe = typeof token === 'string' ? token : safeTokenSupplier(token, this.#options.logger);
        return new module.AuthenticationToken({ token: safe });
      }
      case 'basic':
        return new module.AuthenticationBasic({ username: given.username, password: given.password });
      case 'tls':
        return new module.AuthenticationTls({
          certificatePath: given.certificatePath,
          privateKeyPath: given.privateKeyPath,
        });
      case 'oauth2':
        return new module.AuthenticationOauth2({
          type: 'client_credentials',
          issuer_url: given.issuerUrl,
          ...(given.clientId !== undefined && { client_id: given.clientId }),
          ...(given.clientSecret !== undefined && { client_secret: given.clientSecret }),
          ...(given.privateKey !== undefined && { private_key: given.privateKey }),
          ...(given.audience !== undefined && { audience: given.audience }),
          ...(given.scope !== undefined && { scope: given.scope }),
        });
    }
  }
}
