// The service itself, with a carrier that is busy once and does not know every place. Its tests are in services.test.ts.
import { Runtime, consoleLogger } from 'pulsework';
import { startFailed, topics, transport } from '../broker.js';
import { AddressUnknown, CarrierBusy, Notices, Shipping, orders } from './services.js';
import type { Carrier, Mailbox, Order } from './services.js';

const ORDERS: readonly Order[] = [
  { id: 'A-1', address: 'Tromsø' },
  { id: 'A-2', address: 'Bergen' },
  { id: 'A-3', address: 'Atlantis' },
];

let asked = 0;
const carrier: Carrier = {
  async book({ id, address }) {
    asked += 1;
    if (asked === 1) throw new CarrierBusy(200);
    if (address === 'Atlantis') throw new AddressUnknown(`nobody knows ${address}`);
    return `T-${id}`;
  },
};

const told: string[] = [];
let onEnd: () => void = () => undefined;
const mailbox: Mailbox = {
  async tell(text) {
    told.push(text);
  },
};

let ended = 0;
const runtime = await Runtime.start({
  transport, // embedded, or the broker that PULSAR_URL names
  topics,
  handlers: [Shipping, Notices],
  resolve: (handlerClass) => ((handlerClass as unknown) === Shipping ? new Shipping(carrier) : new Notices(mailbox)),
  logger: consoleLogger({ level: 'silent' }),
  plugins: [
    {
      name: 'end',
      onSettled: ({ handler, settlement, failure }) => {
        if (settlement === 'dead-letter') console.log(`given up: ${failure?.reason ?? ''}`);
        // Each order ends with its customer told, or as a dead letter.
        if (settlement === 'dead-letter' || (handler === 'Notices.tell' && settlement === 'acknowledge')) ended += 1;
        if (ended === ORDERS.length) onEnd();
      },
    },
  ],
}).catch(startFailed);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void runtime.drain());

const allEnded = new Promise<void>((resolve) => (onEnd = resolve));
const publisher = runtime.publisher(orders);
for (const order of ORDERS) await publisher.publish(order);
await Promise.race([allEnded, runtime.closed]);
await runtime.drain();

for (const text of told.toSorted()) console.log(text);
