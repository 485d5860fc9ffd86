// One call that acknowledges in a transaction, on one topic or several. Whoever made it must know whether anything of it was
// sent: only then does an abort bring the messages back.
import { notSent } from '../core/errors.js';
import type { OpenTransaction } from './open-transaction.js';

/** What is to be acknowledged on one topic. @param sending called just before the broker is asked */
export type TopicAcknowledgement = (sending: () => void) => Promise<void>;

/** @param prepare what is to be done; throws what is not to be had here. @throws TransportError as `Subscription.acknowledge`. */
export async function acknowledgingIn(
  transaction: OpenTransaction,
  prepare: () => readonly TopicAcknowledgement[],
): Promise<void> {
  const call = { isSent: false };
  try {
    const acknowledgements = prepare();
    await transaction.run(async () => {
      const results = acknowledgements.map((acknowledge) => acknowledge(() => (call.isSent = true)));
      // All of them: the end of the transaction waits for this.
      await Promise.allSettled(results);
      await Promise.all(results);
    });
  } catch (error) {
    throw call.isSent ? error : notSent(error);
  }
}
