// The administration calls that tests need, over Pulsar's REST interface. Topics are named as clients name them.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** What tests read of a topic's statistics. Counters restart at 0 when the topic is loaded again; rates are never asserted on. */
export interface TopicStats {
  readonly msgInCounter: number;
  readonly publishers: readonly { readonly producerName: string }[];
  readonly subscriptions: Readonly<Record<string, SubscriptionStats>>;
}

export interface SubscriptionStats {
  /** Entries, of which a batch is one. */
  readonly msgBacklog: number;
  /** Messages out and not acknowledged. */
  readonly unackedMessages: number;
  /** Only what the dispatcher has read. */
  readonly msgDelayed: number;
  readonly msgOutCounter: number;
  readonly type: string;
  readonly consumers: readonly ConsumerStats[];
}

export interface ConsumerStats {
  readonly consumerName: string;
  readonly availablePermits: number;
  readonly unackedMessages: number;
  readonly blockedConsumerOnUnackedMsgs: boolean;
}

/** The best proof of what was acknowledged. */
export interface CursorStats {
  readonly markDeletePosition: string;
  readonly individuallyDeletedMessages: string;
}

/** Three times the 20 s that the slowest call took. */
const CALL_LIMIT_MS = 60_000;

/** An answer that is not a success, with the status that tells why. */
export class AdminCallError extends Error {
  readonly status: number;

  constructor(call: string, status: number, text: string) {
    super(`${call} answered ${status}: ${text.slice(0, 500)}`);
    this.name = 'AdminCallError';
    this.status = status;
  }
}

export class PulsarAdmin {
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;

  /** @param token of a superuser, where the broker asks for one. */
  constructor(adminUrl: string, token?: string) {
    this.#base = `${adminUrl.replace(/\/$/, '')}/admin/v2`;
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  createTopic(topic: string): Promise<unknown> {
    return this.call('PUT', `/${pathOf(topic)}`);
  }

  createPartitionedTopic(topic: string, partitions: number): Promise<unknown> {
    return this.call('PUT', `/${pathOf(topic)}/partitions`, partitions);
  }

  /** More partitions than it has. */
  growPartitionedTopic(topic: string, partitions: number): Promise<unknown> {
    return this.call('POST', `/${pathOf(topic)}/partitions`, partitions);
  }

  /** Clients that are connected make the topic again. */
  deleteTopic(topic: string): Promise<unknown> {
    return this.call('DELETE', `/${pathOf(topic)}?force=true`);
  }

  /** The broker closes the topic and loads it again at the next lookup: the cheapest real fault. */
  unload(topic: string): Promise<unknown> {
    return this.call('PUT', `/${pathOf(topic)}/unload`);
  }

  /** Removes the ledgers that everybody has passed, and waits for it: by itself the broker does so in the background. */
  trim(topic: string): Promise<unknown> {
    return this.call('POST', `/${pathOf(topic)}/trim`);
  }

  /** Sends to it are refused afterwards. Gives the place of its last message. */
  async terminate(topic: string): Promise<{ readonly ledgerId: number; readonly entryId: number }> {
    const last = await this.call('POST', `/${pathOf(topic)}/terminate`);
    return last as { readonly ledgerId: number; readonly entryId: number };
  }

  /** As the check of the time to live does, which comes every five minutes: what was published so many whole seconds ago. */
  expireMessages(topic: string, subscription: string, seconds: number): Promise<unknown> {
    const path = `/${pathOf(topic)}/subscription/${encodeURIComponent(subscription)}/expireMessages/${seconds}`;
    return this.call('POST', path);
  }

  async stats(topic: string): Promise<TopicStats> {
    return (await this.call('GET', `/${pathOf(topic)}/stats`)) as TopicStats;
  }

  async cursor(topic: string, subscription: string): Promise<CursorStats | undefined> {
    const stats = (await this.call('GET', `/${pathOf(topic)}/internalStats`)) as {
      readonly cursors: Readonly<Record<string, CursorStats>>;
    };
    return stats.cursors[subscription];
  }

  /** Makes a subscription that begins at the earliest message. */
  createSubscription(topic: string, subscription: string): Promise<unknown> {
    const earliest = { ledgerId: -1, entryId: -1, partitionIndex: -1 };
    return this.call('PUT', `/${pathOf(topic)}/subscription/${encodeURIComponent(subscription)}`, earliest);
  }

  /** Refused with 412 while consumers are connected. */
  deleteSubscription(topic: string, subscription: string): Promise<unknown> {
    return this.call('DELETE', `/${pathOf(topic)}/subscription/${encodeURIComponent(subscription)}`);
  }

  /** Acts within 1.5 s. For example `topicPolicy(topic, 'maxUnackedMessagesOnConsumer', 5)`. */
  topicPolicy(topic: string, name: string, value: Json): Promise<unknown> {
    return this.call('POST', `/${pathOf(topic)}/${name}`, value);
  }

  /** @param namespace `tenant/namespace`; the tenant is made where it is missing. */
  async createNamespace(namespace: string): Promise<void> {
    const [tenant = ''] = namespace.split('/');
    const owner = { adminRoles: [], allowedClusters: ['standalone'] };
    await this.call('PUT', `/tenants/${tenant}`, owner).catch((error: unknown) => {
      if (!(error instanceof AdminCallError && error.status === 409)) throw error;
    });
    await this.call('PUT', `/namespaces/${namespace}`);
  }

  /** With all that is in it. */
  deleteNamespace(namespace: string): Promise<unknown> {
    return this.call('DELETE', `/namespaces/${namespace}?force=true`);
  }

  /** Any other call below `/admin/v2`. Gives the answer parsed, as text where it is not JSON, undefined where it is empty. */
  async call(method: 'GET' | 'PUT' | 'POST' | 'DELETE', path: string, body?: Json): Promise<unknown> {
    const answer = await fetch(`${this.#base}${path}`, {
      method,
      headers: { ...this.#headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(CALL_LIMIT_MS),
    });
    const text = await answer.text();
    if (!answer.ok) throw new AdminCallError(`${method} ${path}`, answer.status, text);
    return text === '' ? undefined : parsed(text);
  }
}

/** Some answers are plain text under the content type of JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** `orders` and `persistent://public/default/orders` are both `persistent/public/default/orders`. */
function pathOf(topic: string): string {
  const full = topic.includes('://') ? topic : `persistent://public/default/${topic}`;
  const [domain = '', rest = ''] = full.split('://');
  const [tenant = '', namespace = '', ...name] = rest.split('/');
  return [domain, tenant, namespace, encodeURIComponent(name.join('/'))].join('/');
}
