// What can be wrong with `transactional`: what it needs of the transport, and topics that no transaction can hold.
import type { OptionChecker } from '../core/options.js';
import { isTopic } from '../core/topic.js';
import { checkTransactional } from '../core/transactional-options.js';
import type { Transport } from '../ports/transport.js';
import { isPlaceless } from './placeless-messages.js';

/** Where a handler takes from and sends to, as far as it says so. */
export interface HandlerTopics {
  readonly source: unknown;
  readonly publishes: unknown;
}

export function checkTransactions(
  option: unknown,
  topics: HandlerTopics,
  { name, capabilities }: Pick<Transport, 'name' | 'capabilities'>,
  check: OptionChecker,
): void {
  checkTransactional(option, check);
  if (option === undefined || option === false) return;
  if (!capabilities.has('transactions'))
    check.problem(
      `"transactional" needs transactions, which the ${name} transport does not have; use embedded() or wire(), or leave it out`,
    );
  for (const topic of namesOf(topics.source, topics.publishes)) {
    if (isPlaceless({ topic }))
      check.problem(`"transactional" needs topics that are persistent: no broker takes ${topic} into a transaction`);
  }
}

/** Topics, and patterns as they are written; a name without a domain is persistent. */
function namesOf(...sources: readonly unknown[]): readonly string[] {
  return sources.flatMap((source) => {
    if (typeof source === 'string') return [source];
    if (isTopic(source)) return [source.name];
    if (Array.isArray(source)) return namesOf(...(source as readonly unknown[]));
    const { pattern } = (typeof source === 'object' && source !== null ? source : {}) as { pattern?: unknown };
    return pattern instanceof RegExp ? [pattern.source] : [];
  });
}
