// What can be wrong with the options about order: what an order needs of the subscription's type and of the transport, and
// what needs an order.
import type { HandlerOptions } from '../core/handler-definition.js';
import type { OptionChecker } from '../core/options.js';
import { redeliversSingly } from '../core/subscription-spec.js';
import type { Transport } from '../ports/transport.js';

export function checkOrdering(
  options: HandlerOptions,
  transport: Pick<Transport, 'name' | 'capabilities'>,
  check: OptionChecker,
): void {
  const { type = 'shared', ordering = 'none', deadLetter, onDeadLetter } = options;
  if (ordering === 'key' && type === 'shared') {
    check.problem(
      '"ordering: key" cannot hold on a shared subscription, where another consumer may get the next message of a key; use type "key-shared"',
    );
  }
  if (ordering === 'partition' && redeliversSingly(type)) {
    check.problem(
      `"ordering: partition" cannot hold on a ${type} subscription, which spreads a partition over consumers; use type "failover"`,
    );
  }
  if (onDeadLetter === 'block-key' && ordering === 'none')
    check.problem('"onDeadLetter: block-key" keeps a key waiting, which needs "ordering"; set that too');
  if (deadLetter === 'block' && ordering !== 'none')
    check.problem('"deadLetter: block" has no way to go on under "ordering"; use "onDeadLetter: block-key"');
  checkSharesOfKeys(options, check);
  checkOrderedNegativeAck(options, transport, check);
}

/** A limit that limits nothing is a mistake. */
function checkSharesOfKeys({ ordering, fairness }: HandlerOptions, check: OptionChecker): void {
  const { by, maxConcurrent } = (fairness as Partial<HandlerOptions['fairness']> | null) ?? {};
  if (ordering === 'key' && maxConcurrent !== undefined && by === undefined)
    check.problem(
      '"fairness.maxConcurrent" counts runs of one key, of which "ordering: key" runs one at a time anyway; give "fairness.by", such as the tenant, or leave it out',
    );
}

function checkOrderedNegativeAck(
  { type, ordering, orderedNegativeAck: mode = 'disabled' }: HandlerOptions,
  transport: Pick<Transport, 'name' | 'capabilities'>,
  check: OptionChecker,
): void {
  if (mode === 'disabled') return;
  if (type !== 'key-shared' || ordering !== 'key')
    check.problem('"orderedNegativeAck" is for type "key-shared" with "ordering: key"; set both, or leave it out');
  else if (mode === 'required' && !transport.capabilities.has('ordered-negative-ack'))
    check.problem(
      `"orderedNegativeAck: required" needs a broker that keeps the order of a key that failed, which the ${transport.name} transport cannot tell one; use "best-effort"`,
    );
}
