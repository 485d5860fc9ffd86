// The conformance suite on the adapter for the official client: over its stand-in, and over the real package where its addon
// loads. What the official client cannot do, whoever defends it, is listed by name.
import { conformanceCases } from 'pulsework/testing';
import type { ConformanceCase } from 'pulsework/testing';
import type { OfficialModule } from 'pulsework/pulsar';
import { pulsar as pulsarTransport } from 'pulsework/pulsar';
import { describe, expect } from 'vitest';
import { realModule } from '../support/pulsar-client-stand-in/official-modules.js';
import { pulsarClientStandIn } from '../support/pulsar-client-stand-in/stand-in.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import { realBrokerHarness, runOnRealBroker } from './real-broker-harness.js';

const PREFETCH_0 = 'a queue of 0 would keep the rest of each producer batch, so a prefetch of 0 is refused';
const LATE_ACKS = 'an acknowledgement is sent within 100 ms after its promise has resolved, and nobody is told when';
const BATCH_SIZE = 'it does not tell how many messages a batch has';
const REWINDS = 'what lies in it when everything is asked back comes first, and a second time';
const QUEUED = 'what lies in its queue is handed on as it lies there, whatever is asked back meanwhile';
const BYTES = 'keys and ordering keys are texts to it';
const NULLS = 'a null value is no bytes to it';

const LAST_CHUNK = 'asking for a message in chunks names its last one only, which brings back no message';

/** By title: why no adapter can pass. */
const BEYOND_THE_CLIENT: Readonly<Record<string, string>> = {
  'a redelivery request counts for its own subscription only': PREFETCH_0,
  'shared: an acknowledgement overtakes a redelivery that waits for permits': PREFETCH_0,
  'key-shared: an acknowledgement overtakes a redelivery that waits for permits': PREFETCH_0,
  'an id acknowledges its message also after the subscription was opened again': PREFETCH_0,
  'shared: what comes again goes before what is new, smallest position first': PREFETCH_0,
  'key-shared: what comes again goes before what is new, smallest position first': PREFETCH_0,
  'a redelivery request lowers what the consumer holds': PREFETCH_0,
  'of a batch that comes to a client with a prefetch of 0 the rest waits for who asks next': PREFETCH_0,
  'with a prefetch of 0 nothing lies in a client that does not ask': PREFETCH_0,
  'permits come back as messages are taken, acknowledged or not': PREFETCH_0,
  'key-shared: a consumer without room holds up its own keys only': PREFETCH_0,
  'exclusive: messages of a batch that were acknowledged do not come again': BATCH_SIZE,
  'failover: messages of a batch that were acknowledged do not come again': BATCH_SIZE,
  'shared: messages of a batch that were acknowledged do not come again': BATCH_SIZE,
  'key-shared: messages of a batch that were acknowledged do not come again': BATCH_SIZE,
  'a batch counts as one entry in the backlog and as its messages in what is unacknowledged': LATE_ACKS,
  'a delayed message is in the backlog and unacknowledged for nobody': LATE_ACKS,
  'shared: asking for one message of a batch brings all of the batch that is not acknowledged': LATE_ACKS,
  'key-shared: asking for one message of a batch brings all of the batch that is not acknowledged': LATE_ACKS,
  'shared: acknowledging one message of a batch resets the count of the batch': LATE_ACKS,
  'key-shared: acknowledging one message of a batch resets the count of the batch': LATE_ACKS,
  'exclusive: after an unload what is unacknowledged comes again, uncounted, and what is acknowledged does not':
    LATE_ACKS,
  'failover: after an unload what is unacknowledged comes again, uncounted, and what is acknowledged does not':
    LATE_ACKS,
  'shared: after an unload what is unacknowledged comes again, uncounted, and what is acknowledged does not': LATE_ACKS,
  'key-shared: after an unload what is unacknowledged comes again, uncounted, and what is acknowledged does not':
    LATE_ACKS,
  'exclusive: what lay in the client before a rewind comes once, in its place': REWINDS,
  'failover: what lay in the client before a rewind comes once, in its place': REWINDS,
  'shared: asking for everything counts also what only lies in the client': QUEUED,
  'key-shared: asking for everything counts also what only lies in the client': QUEUED,
  'failover: the reported state says who is active': 'it does not tell which consumer is active',
  'key-shared: a key in bytes belongs to the same consumer as the text of these bytes': BYTES,
  'a key arrives as it was given, in text or in bytes, or not at all': BYTES,
  'an ordering key arrives in bytes, beside the key': BYTES,
  'runtime: a dead letter carries key bytes, ordering key, event time and properties of its original': BYTES,
  'a null value and an empty payload arrive as what they are': NULLS,
  'a null value in a batch arrives as one': NULLS,
  'shared: a message in chunks is asked back as one, and counts one redelivery': LAST_CHUNK,
  'key-shared: a message in chunks is asked back as one, and counts one redelivery': LAST_CHUNK,
  'shared: runtime: a message in chunks is one delivery, run again as one, and settled with all of them': LAST_CHUNK,
  'key-shared: runtime: a message in chunks is one delivery, run again as one, and settled with all of them':
    LAST_CHUNK,
  'the id of a message in chunks says where it begins, and so does its receipt':
    'it keeps where a message in chunks begins to itself',
  'properties named like parts of an object are properties like any other':
    'a property called __proto__ is lost in the array that it gives properties in',
};

function suite(name: string, moduleOf: () => { module: OfficialModule; check: () => void }): void {
  const run = async (
    conformanceCase: ConformanceCase,
    pulsar: SharedPulsar,
    java: Parameters<typeof realBrokerHarness>[2],
    skip: Parameters<typeof runOnRealBroker>[2],
  ): Promise<void> => {
    const { module, check } = moduleOf();
    const { serviceUrl } = pulsar;
    const newTransport = async () => pulsarTransport({ module, serviceUrl });
    await runOnRealBroker(conformanceCase, realBrokerHarness(pulsar, newTransport, java), skip);
    check();
  };
  describe.concurrent(name, () => {
    for (const conformanceCase of conformanceCases) {
      const { title, needs = [], realTime = 'gate' } = conformanceCase;
      const beyond = BEYOND_THE_CLIENT[title];
      if (realTime !== 'gate') test(title, ({ skip }) => skip(`${realTime.only}: ${realTime.reason}`));
      else if (beyond !== undefined) test(title, ({ skip }) => skip(`the official client cannot: ${beyond}`));
      else if (needs.includes('producer-batches'))
        test(title, ({ pulsar, java, skip }) => run(conformanceCase, pulsar, java, skip));
      else test(title, ({ pulsar, skip }) => run(conformanceCase, pulsar, undefined, skip));
    }
  });
}

suite('pulsar, on the stand-in', () => {
  const standIn = pulsarClientStandIn();
  return { module: standIn.module, check: () => expect(standIn.violations).toEqual([]) };
});

const real = realModule;
if (typeof real === 'string') {
  test('the conformance suite on the real addon', ({ skip }) => skip(real));
} else {
  suite('pulsar, on the real addon', () => ({ module: real, check: () => undefined }));
}

test('what is left out is in the suite', () => {
  const titles = conformanceCases.map(({ title }) => title);
  expect(Object.keys(BEYOND_THE_CLIENT).filter((title) => !titles.includes(title))).toEqual([]);
});
