// The key under which the work for a delivery is recorded, of `idempotent()` and of `effects()`.
import { PulseworkError, describeValue } from '../core/errors.js';
import type { Delivery } from '../core/delivery.js';

/** What databases take as a key column. */
const MAX_KEY_LENGTH = 1_024;

export interface KeyOptions<P> {
  readonly key: (delivery: Delivery<P>) => string;
  readonly scope?: string | undefined;
}

/** @param maker whose `key` it is, for errors. @throws PulseworkError IDEMPOTENCY_KEY_INVALID */
export function idempotencyKey<P>(maker: string, options: KeyOptions<P>, delivery: Delivery<P>): string {
  const { scope = `${delivery.subscription}/${delivery.handler}` } = options;
  let key: unknown;
  try {
    key = options.key(delivery);
  } catch (error) {
    throw invalidKey(maker, 'threw', error);
  }
  if (typeof key !== 'string') throw invalidKey(maker, `must give a text, got ${describeValue(key)}`);
  if (key === '' || key.length > MAX_KEY_LENGTH)
    throw invalidKey(maker, `must give 1 to ${MAX_KEY_LENGTH} characters, got ${key.length}`);
  return `${scope}\t${key}`;
}

function invalidKey(maker: string, rule: string, cause?: unknown): PulseworkError {
  return new PulseworkError('IDEMPOTENCY_KEY_INVALID', `the "key" function of ${maker} ${rule}`, { cause });
}
