// The attributes that spans start with. Samplers see these; they are the same for each message of a handler and topic, so
// they are made once, and a message that is not sampled costs no object.
import type { Attributes } from '@opentelemetry/api';
import type { BatchStart, PublishKind, RunStart, TransactionCall } from '../ports/telemetry.js';
import type { ResolvedOptions } from './open-telemetry-options.js';
import * as names from './semconv.js';

/** Topics can be made up at run time: what is remembered of them must not grow for ever. */
const MAX_REMEMBERED = 1_000;

/** What every span and series has. */
export function commonAttributes({ semconv, serverAddress, serverPort }: ResolvedOptions): Attributes {
  return {
    ...(semconv !== '1.45' && { [names.MESSAGING_SYSTEM]: names.PULSAR }),
    ...(semconv !== '1.44' && { [names.MESSAGING_SYSTEM_NAME]: names.PULSAR }),
    ...(serverAddress !== undefined && { [names.SERVER_ADDRESS]: serverAddress }),
    ...(serverPort !== undefined && { [names.SERVER_PORT]: serverPort }),
  };
}

export class SpanAttributes {
  readonly #common: Attributes;
  /** By handler, topic and partition (from -1, so one more). */
  readonly #runs = new Map<string, Map<string, Attributes[]>>();
  readonly #publishes = new Map<string, Attributes>();

  constructor(options: ResolvedOptions) {
    this.#common = commonAttributes(options);
  }

  /** Attempt included: a sampler may keep every one that is not the first. */
  run(start: RunStart): Attributes {
    const { handler, topic, attempt } = start;
    const partitions = remembered(remembered(this.#runs, handler, newMap), topic, newList);
    const partition = partitionOf(start);
    const first = (partitions[partition + 1] ??= Object.freeze(this.#run(start, partition)));
    return attempt === 1 ? first : { ...first, [names.ATTEMPT]: attempt };
  }

  batch({ handler, subscription, deliveries }: BatchStart, topic: string | undefined): Attributes {
    return {
      ...this.#operation('process', 'process'),
      ...(topic !== undefined && { [names.DESTINATION_NAME]: topic }),
      [names.SUBSCRIPTION_NAME]: subscription,
      [names.HANDLER]: handler,
      [names.BATCH_MESSAGE_COUNT]: deliveries.length,
    };
  }

  publish(topic: string, kind: PublishKind): Attributes {
    return remembered(this.#publishes, `${kind} ${topic}`, () =>
      Object.freeze({
        ...this.#operation('send', 'send'),
        [names.DESTINATION_NAME]: topic,
        [names.PUBLISH_KIND]: kind,
      }),
    );
  }

  settle(call: 'ack' | TransactionCall, { topic, subscription }: RunStart): Attributes {
    return {
      ...this.#operation(call, 'settle'),
      [names.DESTINATION_NAME]: topic,
      [names.SUBSCRIPTION_NAME]: subscription,
    };
  }

  #run({ handler, subscription, topic, topicTemplate }: RunStart, partition: number): Attributes {
    return {
      ...this.#operation('process', 'process'),
      [names.DESTINATION_NAME]: topic,
      ...(topicTemplate !== undefined && { [names.DESTINATION_TEMPLATE]: topicTemplate }),
      ...(partition >= 0 && { [names.DESTINATION_PARTITION_ID]: String(partition) }),
      [names.SUBSCRIPTION_NAME]: subscription,
      [names.HANDLER]: handler,
      [names.ATTEMPT]: 1,
    };
  }

  #operation(name: string, type: string): Attributes {
    return { ...this.#common, [names.OPERATION_NAME]: name, [names.OPERATION_TYPE]: type };
  }
}

/** Of the topic that the span names; a letter has the partition of its own topic. */
function partitionOf({ topic, id }: RunStart): number {
  return id.partition >= 0 && id.topic.startsWith(`${topic}-partition-`) ? id.partition : -1;
}

const newMap = (): Map<string, Attributes[]> => new Map();
const newList = (): Attributes[] => [];

function remembered<T>(map: Map<string, T>, key: string, make: () => T): T {
  const known = map.get(key);
  if (known !== undefined) return known;
  if (map.size >= MAX_REMEMBERED) map.clear();
  const made = make();
  map.set(key, made);
  return made;
}
