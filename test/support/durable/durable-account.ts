// What a process told of its calls to a durable broker before it was killed, and whether what is there afterwards fits.

export const KILLED_TOPIC = 'orders';
export const KILLED_SUBSCRIPTIONS = ['single', 'cumulative'] as const;
type Subscription = (typeof KILLED_SUBSCRIPTIONS)[number];

/** Sets of texts. */
export class DurableAccount {
  readonly #publishing = new Set<string>();
  readonly #published = new Set<string>();
  readonly #acknowledging = { single: new Set<string>(), cumulative: new Set<string>() };
  readonly #acknowledged = { single: new Set<string>(), cumulative: new Set<string>() };

  get receipts(): { readonly published: number; readonly acknowledged: number } {
    const { single, cumulative } = this.#acknowledged;
    return { published: this.#published.size, acknowledged: single.size + cumulative.size };
  }

  /** One line that the process wrote. */
  told(line: string): void {
    const [word = '', first = '', second = ''] = line.split(' ');
    if (word === 'publishing') this.#publishing.add(first);
    else if (word === 'published') this.#published.add(first);
    else if (word === 'acknowledging') this.#acknowledging[first as Subscription].add(second);
    else if (word === 'acknowledged') this.#acknowledged[first as Subscription].add(second);
    else throw new Error(`nobody tells "${line}"`);
  }

  /** @param unacked what the subscription gives after the death, in order. @returns what does not fit, a sentence each */
  violations(subscription: Subscription, unacked: readonly string[]): readonly string[] {
    const there = new Set(unacked);
    const acknowledging = this.#acknowledging[subscription];
    const acknowledged = this.#acknowledged[subscription];
    const missing = [...this.#published].filter((text) => !acknowledging.has(text) && !there.has(text));
    const again = unacked.filter((text) => acknowledged.has(text));
    const unknown = unacked.filter((text) => !this.#publishing.has(text));
    return [
      ...said(subscription, 'was published with a receipt and is not there', missing),
      ...said(subscription, 'was acknowledged with a receipt and comes again', again),
      ...said(subscription, 'was never published and is there', unknown),
      ...(there.size === unacked.length ? [] : [`${subscription}: ${unacked.length - there.size} are there twice`]),
    ];
  }
}

function said(subscription: string, what: string, texts: readonly string[]): readonly string[] {
  return texts.length === 0 ? [] : [`${subscription}: ${texts[0]} ${what}, and ${texts.length - 1} more`];
}
