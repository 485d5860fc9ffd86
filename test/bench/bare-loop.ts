// The baseline: the least that a program must do by hand on the same transport. Receive, decode, check against the
// schema, await the handler, acknowledge; no retries, no time limits, no drain.
import type { ReceivedMessage, Subscription } from '../../src/index.js';

/** Ends when `subscription` is closed. */
export function runBareLoop(
  subscription: Subscription,
  inFlight: number,
  process: (message: ReceivedMessage) => Promise<void>,
): Promise<void> {
  return inFlight === 1 ? oneByOne(subscription, process) : together(subscription, inFlight, process);
}

async function oneByOne(
  subscription: Subscription,
  process: (message: ReceivedMessage) => Promise<void>,
): Promise<void> {
  const { signal } = new AbortController();
  for (;;) {
    const message = await subscription.receive(signal);
    if (message === undefined) return;
    await process(message);
  }
}

/** `receive` takes one call at a time, so one loop hands out the messages and waits while all slots are taken. */
async function together(
  subscription: Subscription,
  inFlight: number,
  process: (message: ReceivedMessage) => Promise<void>,
): Promise<void> {
  const { signal } = new AbortController();
  let running = 0;
  let slotFreed: (() => void) | undefined;
  const ended = (): void => {
    running -= 1;
    slotFreed?.();
    slotFreed = undefined;
  };
  for (;;) {
    if (running === inFlight) await new Promise<void>((resolve) => (slotFreed = resolve));
    const message = await subscription.receive(signal);
    if (message === undefined) return;
    running += 1;
    void process(message).then(ended);
  }
}
