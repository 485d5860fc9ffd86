// A process that relays an outbox in PostgreSQL to the broker in its parent, until it is killed. Arguments: the URL of the
// server and the schema.
import process from 'node:process';
import pg from 'pg';
import { Runtime } from '../../../src/index.js';
import type { EncodedMessage, MessageId, Publisher, PublisherRequest, Transport } from '../../../src/index.js';
import { TransportError } from '../../../src/index.js';
import { postgresOutbox } from '../../../src/postgres.js';
import type { Answer, Request } from './relay-process.js';

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

class ParentTransport implements Transport {
  readonly name = 'parent';
  readonly capabilities: Transport['capabilities'] = new Set();
  readonly maxMessageBytes = 5 * 1024 * 1024;
  readonly #open = new Map<number, (answer: Answer) => void>();
  #last = 0;

  constructor() {
    process.on('message', (answer: Answer) => {
      this.#open.get(answer.to)?.(answer);
      this.#open.delete(answer.to);
    });
  }

  subscribe(): never {
    throw new Error('it only publishes');
  }

  async publisher(topic: string, { producerName }: PublisherRequest = {}): Promise<Publisher> {
    const { producer = 0 } = await this.#ask({ call: 'open', topic, producerName });
    return {
      topic,
      nextSequenceId: () => 0,
      publish: async (message: EncodedMessage, sequenceId: number) => {
        const { id } = await this.#ask({ call: 'publish', producer, message, sequenceId });
        return id as MessageId;
      },
      close: async () => void (await this.#ask({ call: 'close', producer })),
    };
  }

  async close(): Promise<void> {}

  #ask(request: Omit<Request, 'id'>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const id = ++this.#last;
      this.#open.set(id, (answer) => {
        const { error } = answer;
        if (error === undefined) resolve(answer);
        else reject(new TransportError('BROKER_ERROR', error, { retriable: true }));
      });
      process.send?.({ ...request, id });
    });
  }
}

const [url = '', schema = ''] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url });
pool.on('error', () => undefined);
// Whoever is orphaned ends.
process.on('disconnect', () => process.exit(0));
await Runtime.start({
  transport: new ParentTransport(),
  handlers: [],
  outbox: postgresOutbox({ pool, schema }),
  logger: quiet,
});
process.send?.({ id: 0, call: 'started' });
