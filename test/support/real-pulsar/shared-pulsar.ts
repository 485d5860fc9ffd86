// The broker that tests and campaigns share, as they use it: topics of their own, and a place for a proxy in front of it.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PulsarAddress } from './broker-up.js';
import { FaultyProxy } from './faulty-proxy.js';
import { PulsarAdmin } from './pulsar-admin.js';

/** How long one waits for others to give a proxy's place back. */
const PROXY_LIMIT_MS = 60_000;
const LOOK_AGAIN_MS = 200;

export class SharedPulsar {
  readonly address: PulsarAddress;
  readonly admin: PulsarAdmin;

  constructor(address: PulsarAddress) {
    this.address = address;
    this.admin = new PulsarAdmin(address.adminUrl);
  }

  get serviceUrl(): string {
    return this.address.serviceUrl;
  }

  /** A name that no other test has, in full. */
  newTopic(name = 'topic'): string {
    return `persistent://public/default/${name}-${randomUUID()}`;
  }

  /** Takes a place in front of the broker; listening on its port is what takes it, so it is taken once on the machine. */
  async proxy(): Promise<FaultyProxy> {
    const giveUpAt = Date.now() + PROXY_LIMIT_MS;
    while (Date.now() < giveUpAt) {
      for (const { proxy, behind } of this.address.proxies) {
        const taken = await FaultyProxy.start({ port: proxy, targetPort: behind }).catch((error: unknown) => {
          if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
        });
        if (taken !== undefined) return taken;
      }
      await sleep(LOOK_AGAIN_MS);
    }
    throw new Error(`no place for a proxy became free within ${PROXY_LIMIT_MS} ms`);
  }
}
