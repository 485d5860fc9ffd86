// The producers of a runtime, one per topic, opened at first use and kept. A publish says how it ended as a value:
// the Settler decides by it, and a plugin's failure is told from a broker's.
import { isClosed, isRefusedForGood, toError } from '../core/errors.js';
import type { PublishRequest } from '../ports/plugin.js';
import type { RunObserver } from '../ports/telemetry.js';
import type { InTransaction } from '../ports/transaction.js';
import type { Publisher, Transport } from '../ports/transport.js';
import { withDeliverAt } from './delayed-delivery.js';
import type { PendingPublish } from './pending-settlement.js';
import type { PluginHost } from './plugin-host.js';
import type { PortCalls } from './port-calls.js';
import type { TelemetryHost } from './telemetry-host.js';

/** `passing`: the same call may succeed later. `refused`: it never will. `own-code`: a plugin or a schema threw. */
export interface PublishFailure {
  readonly kind: 'passing' | 'refused' | 'own-code';
  readonly error: Error;
}

export interface PublishersParts {
  readonly calls: PortCalls;
  readonly plugins: PluginHost;
  readonly telemetry: TelemetryHost;
}

export class Publishers {
  readonly #transport: Transport;
  readonly #calls: PortCalls;
  readonly #plugins: PluginHost;
  readonly #telemetry: TelemetryHost;
  readonly #open = new Map<string, Promise<Publisher>>();

  constructor(transport: Transport, parts: PublishersParts) {
    this.#transport = transport;
    this.#calls = parts.calls;
    this.#plugins = parts.plugins;
    this.#telemetry = parts.telemetry;
  }

  /**
   * Publishes what has no receipt yet, in order, and waits for every receipt. What has one keeps it when another
   * fails. @param observer of the run that they follow from. @param where the transaction they belong to. @returns the failure that weighs most, undefined when all have their receipts.
   */
  async publishAll(
    publishes: readonly PendingPublish[],
    observer: RunObserver | undefined,
    where?: InTransaction,
  ): Promise<PublishFailure | undefined> {
    const open = publishes.filter((publish) => publish.receipt === undefined);
    const results: (PublishFailure | undefined)[] = [];
    if (this.#plugins.wrapsPublish) {
      // A plugin may take its time: only one after the other keeps the order.
      for (const publish of open) results.push(await this.#publish(publish, observer, where));
    } else {
      results.push(...(await Promise.all(open.map((publish) => this.#publish(publish, observer, where)))));
    }
    const failures = results.filter((result) => result !== undefined);
    return failures.find((failure) => failure.kind !== 'passing') ?? failures[0];
  }

  /** The same for one message, without plugins: for dead letters, which no plugin may hold up or change. */
  async publishPlain(publish: PendingPublish, observer: RunObserver | undefined): Promise<PublishFailure | undefined> {
    try {
      await this.#send(publish, publish, observer);
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

  /** A plugin that swallows a failure, does not wait for it or does not pass the message on must not make it look sent. */
  async #publish(
    publish: PendingPublish,
    observer: RunObserver | undefined,
    where: InTransaction | undefined,
  ): Promise<PublishFailure | undefined> {
    let sending: Promise<void> | undefined;
    let transportError: unknown;
    const send = this.#plugins.wrapPublish((request) => {
      sending = this.#send(request, publish, observer, where);
      sending.catch((error: unknown) => (transportError = error));
      return sending;
    });
    let thrown: unknown = new Error('a plugin did not let the message through');
    try {
      await send({ topic: publish.topic, message: publish.message });
      await sending;
      if (publish.receipt !== undefined) return undefined;
    } catch (error) {
      thrown = error;
    }
    const kind = thrown !== transportError ? 'own-code' : isRefusedForGood(thrown) ? 'refused' : 'passing';
    return { kind, error: toError(thrown) };
  }

  /** @throws what the transport threw. A publisher that was closed under us is opened anew by the next try. */
  async #send(
    { topic, message }: PublishRequest,
    publish: PendingPublish,
    observer: RunObserver | undefined,
    where?: InTransaction,
  ): Promise<void> {
    const key = keyOf(topic, publish.initialSubscription);
    const opening = this.#publisher(topic, publish.initialSubscription);
    const publisher = await opening;
    if (publish.by !== publisher) Object.assign(publish, { by: publisher, sequenceId: undefined });
    const sequenceId = (publish.sequenceId ??= publisher.nextSequenceId());
    const { kind, isRelayed } = publish;
    const observed = this.#telemetry.startPublish({ kind, topic, message, run: observer, isRelayed });
    const sent = observed === undefined ? message : { ...message, properties: observed.properties };
    try {
      publish.receipt = await this.#calls.run(`publishing to ${topic}`, () =>
        publisher.publish(withDeliverAt(sent, this.#transport.capabilities), sequenceId, where),
      );
    } catch (error) {
      this.#telemetry.failed(observed?.observer, toError(error));
      if (isClosed(error) && this.#open.get(key) === opening) this.#open.delete(key);
      throw error;
    }
    this.#telemetry.published(observed, publish.receipt);
  }

  /**
   * One producer per topic, also while publishes fail (G-06); a failed opening is forgotten, so that the next publish
   * tries again, and one that opens after its time limit is closed: nobody would.
   */
  #publisher(topic: string, initialSubscription: string | undefined): Promise<Publisher> {
    const key = keyOf(topic, initialSubscription);
    const known = this.#open.get(key);
    if (known !== undefined) return known;
    let late: Promise<Publisher> | undefined;
    const opening = this.#calls.run(
      `opening a publisher on ${topic}`,
      () => (late = this.#transport.publisher(topic, { initialSubscription })),
    );
    this.#open.set(key, opening);
    opening.catch(() => {
      this.#open.delete(key);
      late?.then((publisher) => publisher.close()).catch(() => undefined);
    });
    return opening;
  }
}

function keyOf(topic: string, initialSubscription: string | undefined): string {
  return initialSubscription === undefined ? topic : `${topic} ${initialSubscription}`;
}
