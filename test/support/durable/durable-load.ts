// A process on a durable embedded broker under load, until it is killed: it publishes, alone and in batches, and acknowledges
// one by one, in parts of batches and cumulatively. It tells of each call before it is made and once its receipt is here.
// Arguments: the folder of the broker, the file to tell to, and the number of this life.
import { openSync, writeSync } from 'node:fs';
import { embedded } from 'pulsework/embedded';
import { sqliteStore } from 'pulsework/sqlite';
import { KILLED_TOPIC } from './durable-account.js';

const PUBLISHING_LANES = 6;
const BATCH = 3;
/** Of those that came, so many are acknowledged; others stay. */
const ACKNOWLEDGED_OF_10 = 9;

const [dir = '', tellTo = '', life = ''] = process.argv.slice(2);
const told = openSync(tellTo, 'a');
/** Synchronous: a line that was told has left this process. */
const tell = (line: string): void => void writeSync(told, `${line}\n`);
const { signal } = new AbortController();
const encoder = new TextEncoder();
const decoder = new TextDecoder();

const transport = embedded({ store: sqliteStore({ dir }), options: { maxLedgerEntries: 200 } });
const single = await transport.subscribe({
  ...{ topics: [KILLED_TOPIC], subscription: 'single', type: 'shared', initialPosition: 'earliest' },
  ...{ consumerName: life, prefetch: 500 },
});
const cumulative = await transport.subscribe({
  ...{ topics: [KILLED_TOPIC], subscription: 'cumulative', type: 'exclusive', initialPosition: 'earliest' },
  ...{ consumerName: life, prefetch: 500 },
});
console.log('open');

const messageOf = (text: string) => ({ payload: encoder.encode(text), properties: { life } });

async function publishSingly(lane: number): Promise<never> {
  const publisher = await transport.publisher(KILLED_TOPIC);
  for (let n = 0; ; n++) {
    const text = `${life}.${lane}.${n}`;
    tell(`publishing ${text}`);
    await publisher.publish(messageOf(text), publisher.nextSequenceId());
    tell(`published ${text}`);
  }
}

async function publishBatches(): Promise<never> {
  for (let n = 0; ; n++) {
    const texts = Array.from({ length: BATCH }, (_, index) => `${life}.batch.${n}.${index}`);
    for (const text of texts) tell(`publishing ${text}`);
    await transport.broker.publishBatch(KILLED_TOPIC, texts.map(messageOf));
    for (const text of texts) tell(`published ${text}`);
  }
}

async function acknowledgeSingly(): Promise<never> {
  for (let n = 0; ; n++) {
    const received = await single.receive(signal);
    if (received === undefined) throw new Error('it was closed');
    if (n % 10 >= ACKNOWLEDGED_OF_10) continue;
    const text = decoder.decode(received.payload ?? undefined);
    tell(`acknowledging single ${text}`);
    void single.acknowledge([received.id]).then(() => tell(`acknowledged single ${text}`));
  }
}

/** Everything that came before counts with it. */
async function acknowledgeCumulatively(): Promise<never> {
  let waiting: string[] = [];
  for (;;) {
    const received = await cumulative.receive(signal);
    if (received === undefined) throw new Error('it was closed');
    waiting.push(decoder.decode(received.payload ?? undefined));
    if (waiting.length < 7) continue;
    const texts = waiting;
    waiting = [];
    for (const text of texts) tell(`acknowledging cumulative ${text}`);
    await cumulative.acknowledgeCumulative(received.id);
    for (const text of texts) tell(`acknowledged cumulative ${text}`);
  }
}

await Promise.all([
  ...Array.from({ length: PUBLISHING_LANES }, (_, lane) => publishSingly(lane)),
  publishBatches(),
  acknowledgeSingly(),
  acknowledgeCumulatively(),
]);
