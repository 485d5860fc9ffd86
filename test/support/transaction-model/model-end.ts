// What must be in effect in the end: every transaction has ended and its end is in effect everywhere, also where nobody was told; the same
// after one more death; and nothing is left of any.
import { SWEEPS } from './model-broker.js';
import type { ModelWorld } from './model-world.js';
import type { Seen } from './observer.js';
import type { SubscriptionPlace } from './reader.js';

const STEP_MS = 5_000;
/** Longer than any transaction may last, and than anything is remembered. */
const STEPS = 12;
/** Of Failover, until the first message. */
const TAKEOVER_MS = 1_000;

export async function checkEnd(world: ModelWorld): Promise<void> {
  const { observer } = world;
  observer.tell('nothing goes wrong any more');
  await world.calm();
  await world.abortAll();
  await converge(world);
  await checkApplied(world);
  // On Exclusive and Failover the client has to ask (T-17), on Key_Shared a key waits for who had it before (K-15).
  checkHeld(world, 'stuck', ({ type }) => type === 'shared');
  await readAnew(world);
  checkHeld(world, 'atomic');
  observer.checkAcknowledgedOnce();
  observer.tell('once more, what is on the disk');
  await world.reborn();
  await readAnew(world);
  checkHeld(world, 'durable');
  // What is collected when a broker begins: everything is old by then.
  await world.pass(2 * SWEEPS.retentionMs);
  await world.reborn();
  await checkNothingLeft(world);
  await deleteAll(world);
}

/** Time passes, and clients ask for more, as clients do. */
async function converge(world: ModelWorld): Promise<void> {
  for (let step = 0; step < STEPS; step++) {
    world.joinAll();
    for (const { handle } of world.living.readers) handle.flow(1);
    await world.pass(STEP_MS);
  }
}

async function checkApplied({ observer, disk }: ModelWorld): Promise<void> {
  for (const [transaction, { state }] of observer.transactions)
    if (state === 'OPEN') observer.violated('converged', `${transaction} is open for ever`);
  for (const { path } of await disk.metadata.scan({}))
    if (path.startsWith('/txn/op/') || path.startsWith('/pending-ack-log/'))
      observer.violated('converged', `an end is not in effect everywhere: ${path}`);
}

/** What is not acknowledged, all of it. */
async function readAnew(world: ModelWorld): Promise<void> {
  for (const reader of world.living.readers) world.living.leave(reader);
  await world.rest();
  world.joinAll();
  await world.pass(TAKEOVER_MS);
}

function checkHeld(
  { observer, living, subscriptions }: ModelWorld,
  rule: 'stuck' | 'atomic' | 'durable',
  isChecked: (place: SubscriptionPlace) => boolean = () => true,
): void {
  for (const place of subscriptions.filter(isChecked)) {
    const held = new Set<Seen>(living.readersOf(place).flatMap((reader) => [...reader.holds.keys()]));
    for (const message of observer.messages.filter(({ topic }) => topic === place.topic)) {
      const isVisible = observer.isVisible(message);
      const isAcknowledged = observer.isAcknowledged(message, place.key);
      const isHeld = held.has(message);
      const text = `m${message.number} on ${place.key}`;
      if (isHeld && (isVisible === false || isAcknowledged === true))
        observer.violated(
          rule,
          `${text} is delivered and ${isVisible === false ? 'does not count' : 'is acknowledged'}`,
        );
      if (!isHeld && isVisible === true && isAcknowledged === false)
        observer.violated(rule, `${text} counts, is not acknowledged, and is not delivered`);
    }
  }
}

async function checkNothingLeft({ observer, disk }: ModelWorld): Promise<void> {
  for (const { path, value } of await disk.metadata.scan({})) {
    if (path.startsWith('/txn/tc-seq/') || path.startsWith('/txn/segment-state/watermark/')) continue;
    // For as long as entries of it are kept.
    if (path.startsWith('/txn/segment-state/aborted/')) {
      const { ledgerId } = JSON.parse(new TextDecoder().decode(value)) as { readonly ledgerId: number };
      const [segment = ''] = path.slice('/txn/segment-state/aborted/'.length).split(':');
      if (disk.topics.hasLedger(decodeURIComponent(segment), ledgerId)) continue;
    }
    observer.violated('left', path);
  }
}

async function deleteAll(world: ModelWorld): Promise<void> {
  const { observer, disk, living, subscriptions } = world;
  for (const topic of new Set(subscriptions.map((place) => place.topic)))
    living.broker.deleteTopic(topic, { force: true });
  await world.rest();
  for (const { path } of await disk.metadata.scan({}))
    if (!path.startsWith('/txn/tc-seq/')) observer.violated('left', `${path}, of a topic that is deleted`);
}
