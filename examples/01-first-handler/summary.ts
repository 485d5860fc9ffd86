// The summary on the screen: made from what the services wrote down and what the journal saw.
import { books } from './books.js';
import type { Journal, Journey } from './journal.js';

export function summaryLines(journal: Journal): readonly string[] {
  const handled = journal.count('Billing.charge', 'acknowledge');
  return [
    ...journeyLines('One order that was retried', journal.retried),
    ...journeyLines('One order that was retried in vain', journal.deadLettered),
    `orders handled   ${handled}`,
    `orders retried   ${journal.retriedMessages}, by ${journal.count('Billing.charge', 'redeliver')} redeliveries`,
    `receipts booked  ${books.receipts.size}`,
    ...revenueByCurrency().map(([currency, cents]) => `revenue          ${(cents / 100).toFixed(2)} ${currency}`),
    `dead letters     ${books.deadOrders.size}`,
    ...deadLetterLines(),
  ];
}

function journeyLines(title: string, journey: Journey | undefined): readonly string[] {
  if (journey === undefined) return [];
  const steps = journey.map(({ attempt, outcome, settlement, delayMs, failure }) => {
    const next = settlement === 'redeliver' ? `again in ${delayMs ?? 0} ms` : PAST[settlement];
    const reason = failure === undefined ? '' : `  ${failure.reason}`;
    return `  attempt ${attempt}  ${outcome.padEnd(7)}  ${next.padEnd(15)}${reason}`.trimEnd();
  });
  return [`${title}:`, ...steps, ''];
}

const PAST = {
  acknowledge: 'acknowledged',
  'dead-letter': 'dead letter',
  skip: 'given up',
  block: 'blocked',
  leave: 'left',
} as const;

function revenueByCurrency(): readonly (readonly [string, number])[] {
  const totals = new Map<string, number>();
  for (const { currency, amountCents } of books.receipts.values()) {
    totals.set(currency, (totals.get(currency) ?? 0) + amountCents);
  }
  return [...totals].sort(([a], [b]) => a.localeCompare(b));
}

function deadLetterLines(): readonly string[] {
  const deadOrders = [...books.deadOrders.values()].sort((a, b) => a.line - b.line);
  const causes = [...new Set(deadOrders.map(({ cause }) => cause))].sort();
  return causes.flatMap((cause) => {
    const ofCause = deadOrders.filter((deadOrder) => deadOrder.cause === cause);
    return [
      `  ${cause}: ${ofCause.length}`,
      ...ofCause.map(({ line, attempt, reason }) => `    line ${line}, attempt ${attempt}: ${printable(reason)}`),
    ];
  });
}

/** Reasons quote what came in, and a terminal obeys control characters. */
function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, '?');
}
