// A process that runs orders on SQLite, alone or beside another one, until it is killed or all orders have ended. What its steps
// do outside is a line in a file that is forced to the disk. Arguments: the folder, and how many orders there are.
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Runtime, consoleLogger, fixedBackoff } from 'pulsework';
import { embedded } from 'pulsework/embedded';
import { sqliteStore, sqliteWorkflowStore } from 'pulsework/sqlite';
import { Workflows, defineWorkflow } from 'pulsework/workflow';
import { z } from 'zod';

const [folder = '', count = '0'] = process.argv.slice(2);
const ledger = openSync(join(folder, 'ledger'), 'a');

function effect(what: string): void {
  writeSync(ledger, `${what}\n`);
  fsyncSync(ledger);
}

const order = defineWorkflow({
  name: 'order',
  version: 1,
  input: z.object({ fails: z.boolean() }),
  async run(flow, { fails }) {
    for (const step of ['charge', 'reserve', 'pack']) {
      await flow.step(
        step,
        async ({ idempotencyKey, attempt }) => {
          effect(`${step} ${idempotencyKey}`);
          await new Promise((resolve) => setTimeout(resolve, 3));
          if (step === 'reserve' && attempt === 1) throw new Error('busy');
        },
        {
          compensate: (_, { idempotencyKey }) => effect(`undo-${step} ${idempotencyKey}`),
          redelivery: { backoff: fixedBackoff(5) },
        },
      );
      await flow.sleep('a moment', 10);
    }
    if (fails) throw flow.failure('it fails');
    return 'done';
  },
});

const runtime = await Runtime.start({
  transport: embedded({ store: sqliteStore({ dir: folder }) }),
  handlers: [],
  logger: consoleLogger({ level: 'error' }),
});
const workflows = await Workflows.start({
  runtime,
  store: sqliteWorkflowStore({ path: join(folder, 'workflows.db') }),
  definitions: [order],
  leaseMs: 1_000,
  scanIntervalMs: 200,
});
process.stdout.write('running\n');

const ids = Array.from({ length: Number(count) }, (_, n) => String(n));
for (const id of ids) await workflows.start(order, { id, input: { fails: Number(id) % 3 === 0 } });
const results = await Promise.allSettled(ids.map((id) => workflows.handle(order, id).result()));
const histories = await Promise.all(ids.map((id) => workflows.history(order, id)));
process.stdout.write(
  `${JSON.stringify({ results: results.map(({ status }) => status), journals: histories.map(({ journal }) => journal) })}\n`,
);
await runtime.drain();
closeSync(ledger);
