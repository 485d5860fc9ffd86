// What becomes of a message that fails: errors mapped to outcomes, the schedule of attempts, and everything that a dead
// letter says about why it is one.
import {
  bytesCodec,
  Runtime,
  consoleLogger,
  deadLetterTopicName,
  defineHandler,
  explain,
  success,
  topic,
} from 'pulsework';
import type { Delivery, SettlementReport } from 'pulsework';
import { startFailed, topics, transport } from '../broker.js';
import { Attempts } from './attempts.js';
import { Billing, Mailing, mails, payments } from './services.js';

/** Properties whose values no two runs share, and why. They are there; only their values are not printed. */
const VARYING: Readonly<Record<string, string>> = {
  ORIGIN_MESSAGE_ID: 'given by the broker',
  REAL_TOPIC: 'the full name of the topic',
  'pulsework-first-failure-time': 'a time',
  'pulsework-last-failure-time': 'a time',
  'pulsework-host': 'the name of this machine',
  'pulsework-process-id': 'the number of this process',
  'pulsework-stack': 'has the paths of this machine',
  'pulsework-version': 'changes with each release',
};

const deadLetters: Delivery[] = [];
const deadLetterDesk = defineHandler({
  name: 'dead-letter-desk',
  source: [
    topic(deadLetterTopicName(payments.name, 'billing'), { codec: bytesCodec }),
    topic(deadLetterTopicName(mails.name, 'mailing'), { codec: bytesCodec }),
  ],
  subscription: 'dead-letter-desk',
  handle: (letter) => {
    deadLetters.push(letter);
    return success();
  },
});

// Needs no broker. Without `topics` its names are those of the code, whatever broker this runs on.
console.log(`${explain([Mailing]).text}\n`);

const attempts = new Attempts();
const runtime = await Runtime.start({
  transport, // embedded, or the broker that PULSAR_URL names
  topics,
  handlers: [Billing, Mailing, deadLetterDesk],
  plugins: [attempts],
  logger: consoleLogger({ level: 'silent' }),
}).catch(startFailed);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void runtime.drain());

const payment = runtime.publisher(payments);
await payment.publish({ card: '4111111111111111', amountCents: 4_200 }, { key: 'payment 1, fine' });
await payment.publish({ card: '4111111111111111', amountCents: 250_000 }, { key: 'payment 2, gateway busy' });
await payment.publish({ card: '4000000000000002', amountCents: 990 }, { key: 'payment 3, card declined' });
await runtime
  .publisher(mails)
  .publish(
    { to: 'zoe@example.org', subject: 'Ihre Bestellung, Zoë' },
    { key: 'mail 1', properties: { tenant: 'acme' } },
  );

const MESSAGES = 4;
const DEAD_LETTERS = 2;
await Promise.race([attempts.untilEnded(MESSAGES + DEAD_LETTERS), runtime.closed]);
await runtime.drain();

for (const [key, reports] of attempts.journeys('Billing.charge', 'Mailing.send')) {
  console.log(`${key}:`);
  for (const report of reports) console.log(`  ${attemptLine(report)}`);
}
console.log(`\nattempts that came before their time: ${attempts.early}`);

const letter = deadLetters.find(({ key }) => key === 'mail 1');
if (attempts.early > 0 || letter === undefined || deadLetters.length !== DEAD_LETTERS) process.exitCode = 1;
console.log(`\nproperties of the dead letter of ${letter?.key ?? 'nobody'}:`);
for (const [name, value] of Object.entries(letter?.properties ?? {}).sort(([a], [b]) => a.localeCompare(b, 'en'))) {
  console.log(`  ${name}: ${VARYING[name] === undefined ? value : `(${VARYING[name]})`}`);
}

const declined = deadLetters.find(({ properties }) => properties['pulsework-cause'] === 'poison');
console.log(`\nreason of the other one: ${declined?.properties['pulsework-reason'] ?? 'none'}`);

function attemptLine({ attempt, outcome, settlement, delayMs, cause }: SettlementReport): string {
  const words = `attempt ${attempt}  ${outcome.padEnd(11)}`;
  if (settlement === 'redeliver') return `${words}  again after ${delayMs ?? 0} ms`;
  return cause === undefined ? `${words}  acknowledged` : `${words}  dead letter: ${cause}`;
}
