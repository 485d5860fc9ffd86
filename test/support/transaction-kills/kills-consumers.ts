// Where the workers of a killed service get jobs: as users do, and, for acknowledgements up to a message in a transaction, which
// the transport has no call for, from the broker.
import type { EmbeddedBroker, EmbeddedTransport } from 'pulsework/embedded';
import type { Transaction } from '../../../src/ports/transaction.js';
import { transactionKey } from '../../../src/core/transaction-id.js';
import type { MessageId } from '../../../src/core/message-id.js';
import { redeliversSingly } from '../../../src/core/subscription-spec.js';
import type { InputPlan } from './kills-settings.js';
import { WORKERS } from './kills-settings.js';

export interface Job {
  readonly text: string;
  readonly id: MessageId;
}

export interface JobSource {
  /** At least one, once there is one; undefined: it is closed. One call at a time. */
  take(most: number): Promise<readonly Job[] | undefined>;
  acknowledgeIn(transaction: Transaction, jobs: readonly Job[]): Promise<void>;
  /** They were not done. @param isKnown by an abort that was answered */
  notDone(jobs: readonly Job[], isKnown: boolean): Promise<void>;
}

/** What more there is comes within it. */
const MORE_MS = 5;
const PERMITS = 20;
const decoder = new TextDecoder();

export async function jobSource(transport: EmbeddedTransport, input: InputPlan, name: string): Promise<JobSource> {
  if (input.isCumulative) return new CumulativeSource(transport.broker, input, name);
  const jobs = await transport.subscribe({
    ...{ topics: [transport.broker.fullName(input.name)], subscription: WORKERS, type: input.type },
    ...{ initialPosition: 'earliest', prefetch: PERMITS, consumerName: name },
  });
  const receive = async (signal: AbortSignal): Promise<Job | undefined> => {
    const message = await jobs.receive(signal);
    return message && { text: decoder.decode(message.payload ?? undefined), id: message.id };
  };
  return {
    async take(most) {
      const first = await receive(new AbortController().signal);
      if (first === undefined) return undefined;
      // What another worker asked back may come while this one waits for more: the newest copy counts.
      const taken = new Map([[first.text, first]]);
      while (taken.size < most) {
        const more = await receive(AbortSignal.timeout(MORE_MS));
        if (more === undefined) break;
        taken.set(more.text, more);
      }
      return [...taken.values()];
    },
    acknowledgeIn: (transaction, taken) =>
      jobs.acknowledge(
        taken.map(({ id }) => id),
        { transaction },
      ),
    async notDone(taken, isKnown) {
      // On Shared and Key_Shared an abort brings them by itself (T-17).
      if (!isKnown || !redeliversSingly(input.type)) await jobs.redeliver(taken.map(({ id }) => id));
    },
  };
}

class CumulativeSource implements JobSource {
  readonly #queue: Job[] = [];
  readonly #handle: ReturnType<EmbeddedBroker['subscribe']>;
  #arrived: () => void = () => undefined;
  /** What comes before it passed it while it was pending still: acknowledged up to there, it would be gone. */
  #awaited: string | undefined;

  constructor(broker: EmbeddedBroker, { name: topic, type }: InputPlan, consumerName: string) {
    const request = { topic, subscription: WORKERS, type, initialPosition: 'earliest', consumerName } as const;
    const full = broker.fullName(topic);
    this.#handle = broker.subscribe(request, {
      deliver: ({ entry, ledgerId, entryId, unacked }) => {
        const place = { ledgerId, entryId, partition: -1, batchSize: entry.batchSize, topic: full };
        for (const [index, { payload }] of entry.messages.entries()) {
          if (unacked !== undefined && !unacked.has(index)) continue;
          const id = { ...place, batchIndex: entry.batchSize === 0 ? -1 : index };
          this.#came({ text: decoder.decode(payload ?? undefined), id });
        }
        this.#arrived();
      },
      activeChanged: () => undefined,
      disconnected: () => undefined,
      endOfTopic: () => undefined,
    });
    this.#handle.flow(PERMITS);
  }

  async take(most: number): Promise<readonly Job[]> {
    while (this.#queue.length === 0) await new Promise<void>((resolve) => (this.#arrived = resolve));
    const taken = this.#queue.splice(0, most);
    this.#handle.flow(taken.length);
    return taken;
  }

  async acknowledgeIn({ id }: Transaction, jobs: readonly Job[]): Promise<void> {
    const last = jobs.at(-1);
    if (last !== undefined) await this.#handle.acknowledgeCumulativeIn(transactionKey(id), last.id);
  }

  async notDone([first]: readonly Job[]): Promise<void> {
    const { length } = this.#queue.splice(0);
    this.#awaited = first?.text;
    this.#handle.redeliverAll();
    this.#handle.flow(length);
  }

  #came(job: Job): void {
    if (this.#awaited !== undefined && this.#awaited !== job.text) return this.#handle.flow(1);
    this.#awaited = undefined;
    this.#queue.push(job);
  }
}
