// The producers of a runtime, one per topic, opened at first use and kept. A publish says how it ended as a value:
// the Settler decides by it, and a plugin's failure is told from a broker's.
import { isRefusedForGood, toError } from '../core/errors.js';
import type { PublishRequest } from '../ports/plugin.js';
import type { Publisher, Transport } from '../ports/transport.js';
import type { PendingPublish } from './pending-settlement.js';
import type { PluginHost } from './plugin-host.js';
import type { PortCalls } from './port-calls.js';

/** `passing`: the same call may succeed later. `refused`: it never will. `plugin`: a plugin's own code threw. */
export interface PublishFailure {
  readonly kind: 'passing' | 'refused' | 'plugin';
  readonly error: Error;
}

export class Publishers {
  readonly #transport: Transport;
  readonly #calls: PortCalls;
  readonly #plugins: PluginHost;
  readonly #open = new Map<string, Promise<Publisher>>();

  constructor(transport: Transport, calls: PortCalls, plugins: PluginHost) {
    this.#transport = transport;
    this.#calls = calls;
    this.#plugins = plugins;
  }

  /**
   * Publishes what has no receipt yet, in order, and waits for every receipt. What has one keeps it when another
   * fails. @returns the failure that weighs most, undefined when all have their receipts.
   */
  async publishAll(publishes: readonly PendingPublish[]): Promise<PublishFailure | undefined> {
    const open = publishes.filter((publish) => publish.receipt === undefined);
    const results = await Promise.all(open.map((publish) => this.#publish(publish)));
    const failures = results.filter((result) => result !== undefined);
    return failures.find((failure) => failure.kind !== 'passing') ?? failures[0];
  }

  /** The same for one message, without plugins: for dead letters, which no plugin may hold up or change. */
  async publishPlain(publish: PendingPublish): Promise<PublishFailure | undefined> {
    try {
      await this.#send(publish, publish);
      return undefined;
    } catch (error) {
      return { kind: isRefusedForGood(error) ? 'refused' : 'passing', error: toError(error) };
    }
  }

  async close(): Promise<void> {
    const opened = await Promise.allSettled(this.#open.values());
    this.#open.clear();
    const publishers = opened.filter((result) => result.status === 'fulfilled').map((result) => result.value);
    await Promise.allSettled(
      publishers.map((publisher) => this.#calls.run('closing a publisher', () => publisher.close())),
    );
  }

  async #publish(publish: PendingPublish): Promise<PublishFailure | undefined> {
    let transportError: unknown;
    const send = this.#plugins.wrapPublish(async (request) => {
      try {
        await this.#send(request, publish);
      } catch (error) {
        transportError = error;
        throw error;
      }
    });
    try {
      await send({ topic: publish.topic, message: publish.message });
    } catch (error) {
      const kind = error !== transportError ? 'plugin' : isRefusedForGood(error) ? 'refused' : 'passing';
      return { kind, error: toError(error) };
    }
    return undefined;
  }

  /** @throws what the transport threw. */
  async #send({ topic, message }: PublishRequest, publish: PendingPublish): Promise<void> {
    const publisher = await this.#publisher(topic);
    const sequenceId = (publish.sequenceId ??= publisher.nextSequenceId());
    publish.receipt = await this.#calls.run(`publishing to ${topic}`, () => publisher.publish(message, sequenceId));
  }

  /** One producer per topic; a failed opening is forgotten, so that the next publish tries again. */
  #publisher(topic: string): Promise<Publisher> {
    const known = this.#open.get(topic);
    if (known !== undefined) return known;
    const opening = this.#calls.run(`opening a publisher on ${topic}`, () => this.#transport.publisher(topic));
    this.#open.set(topic, opening);
    opening.catch(() => this.#open.delete(topic));
    return opening;
  }
}
