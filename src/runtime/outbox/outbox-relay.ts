// Relays an outbox: becomes its leader, or waits until it can be; claims rows, sends them in their lanes, deletes what is
// published. Whatever goes wrong with the store ends the lead, and everything begins anew with what the table says.
import { exponentialBackoff } from '../../core/backoff.js';
import { PulseworkError, toError } from '../../core/errors.js';
import { seconds } from '../../core/options.js';
import type { Clock, Timer } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { OutboxLead, OutboxStore, OutboxSummary } from '../../ports/outbox-store.js';
import type { OutboxHealth } from '../../ports/runtime-view.js';
import { OutboxLanes } from './outbox-lanes.js';
import { OutboxSender } from './outbox-sender.js';
import type { OutboxSenderParts } from './outbox-sender.js';

/** How often the table is looked at where no news comes, and how often who waits to lead asks. Leads need at least 3 s. */
const POLL_MS = 1_000;
/** Of one claim: the database locks so many rows at a time. */
const CLAIM_LIMIT = 256;
/** Of a process that does not lead. */
const NOTHING_KNOWN: OutboxSummary = { waiting: 0, oldestMs: undefined, refused: 0 };
/** After an error of the store. */
const backoff = exponentialBackoff({ minMs: 200, maxMs: seconds(10), jitter: 'equal' });

export interface OutboxRelayParts extends OutboxSenderParts {
  readonly store: OutboxStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
}

export class OutboxRelay {
  readonly #parts: OutboxRelayParts;
  #running: Promise<void> | undefined;
  #draining = false;
  /** Something happened since the loop last looked. */
  #woken = false;
  #wait: { readonly timer: Timer; readonly end: () => void } | undefined;
  #role: OutboxHealth['role'] = 'standby';
  #reason: string | undefined;
  #relayed = 0;
  #lanes: OutboxLanes | undefined;
  #summary = NOTHING_KNOWN;

  constructor(parts: OutboxRelayParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  health(): OutboxHealth {
    const { store, clock } = this.#parts;
    const { waiting, oldestMs, refused } = this.#summary;
    return {
      store: store.name,
      role: this.#role,
      reason: this.#reason ?? this.#lanes?.failure,
      relayed: this.#relayed,
      claimed: this.#lanes?.size ?? 0,
      waiting,
      refused,
      oldestMs: oldestMs === undefined ? undefined : Math.max(0, clock.now() - oldestMs),
    };
  }

  /** Claims nothing more; what is on its way arrives, the rest waits for the next leader. Another process may lead at once. */
  async drain(): Promise<void> {
    this.#draining = true;
    this.#wake();
    await this.#running;
  }

  async #run(): Promise<void> {
    let failures = 0;
    while (!this.#draining) {
      try {
        const lead = await this.#lead();
        if (lead !== undefined) await this.#relay(lead, () => (failures = 0));
        else if (this.#become('standby')) this.#parts.logger.info('another process relays the outbox', this.#fields);
        await this.#rest(POLL_MS);
      } catch (error) {
        this.#become('failing', toError(error));
        const againInMs = backoff(failures++, this.#parts.random);
        const isUsual = error instanceof PulseworkError && error.code === 'OUTBOX_LEAD_LOST';
        this.#parts.logger[isUsual ? 'warn' : 'error']('the outbox is not relayed', {
          ...this.#fields,
          error: toError(error),
          againInMs,
        });
        await this.#rest(againInMs);
      }
    }
  }

  async #lead(): Promise<OutboxLead | undefined> {
    const { calls, store } = this.#parts;
    let late: Promise<OutboxLead | undefined> | undefined;
    try {
      return await calls.run('becoming the leader of the outbox', () => (late = store.lead()));
    } catch (error) {
      // A lead that comes after its time limit belongs to nobody.
      void late?.then((lead) => lead?.end()).catch(() => undefined);
      throw error;
    }
  }

  async #relay(lead: OutboxLead, worked: () => void): Promise<void> {
    const sender = new OutboxSender(lead.outboxId, this.#parts);
    const lanes = new OutboxLanes({ ...this.#parts, sender, wake: () => this.#wake() });
    this.#lanes = lanes;
    let news = true;
    lead.onNews(() => {
      news = true;
      this.#wake();
    });
    try {
      lanes.add(await this.#call('reading the outbox', () => lead.claimed()));
      if (this.#become('leading'))
        this.#parts.logger.info('the outbox is relayed', { ...this.#fields, claimed: lanes.size });
      for (let polled = -Infinity; !this.#draining;) {
        await this.#writeDown(lead, lanes);
        const isDue = this.#parts.clock.now() - polled >= POLL_MS;
        if (isDue) {
          this.#summary = await this.#call('reading the outbox', () => lead.summary());
          polled = this.#parts.clock.now();
        }
        if (isDue || news) {
          news = false;
          news = await this.#claim(lead, lanes);
        }
        worked();
        if (!news) await this.#rest(polled + POLL_MS - this.#parts.clock.now());
      }
    } finally {
      await this.#end(lead, lanes, sender);
    }
  }

  /** @returns whether there may be more. */
  async #claim(lead: OutboxLead, lanes: OutboxLanes): Promise<boolean> {
    const options = { limit: CLAIM_LIMIT, exceptTopics: lanes.fullTopics, nowMs: this.#parts.clock.now() };
    const rows = await this.#call('claiming messages of the outbox', () => lead.claim(options));
    lanes.add(rows);
    return rows.length === CLAIM_LIMIT;
  }

  /** What became of rows. In one place with the claims: nothing behind a refused row may be claimed meanwhile. */
  async #writeDown(lead: OutboxLead, lanes: OutboxLanes): Promise<void> {
    const ids = lanes.takePublished();
    this.#relayed += ids.length;
    if (ids.length > 0) await this.#call('deleting published messages of the outbox', () => lead.delete(ids));
    for (const refused of lanes.takeRefusals()) {
      const refusal = { reason: refused.reason, nowMs: this.#parts.clock.now() };
      await this.#call('writing down a refused message of the outbox', () => lead.refuse(refused.row.id, refusal));
      refused.written();
    }
  }

  /** Everything that was on its way has its answer before somebody else may lead. */
  async #end(lead: OutboxLead, lanes: OutboxLanes, sender: OutboxSender): Promise<void> {
    await lanes.stop();
    // What cannot be deleted now is published again by the next leader.
    await this.#writeDown(lead, lanes).catch(() => undefined);
    await sender.close();
    // Also where the runtime has closed meanwhile and lets no more calls through.
    const ended = lead.end();
    await this.#call('giving up the lead of the outbox', () => ended).catch(() => undefined);
    this.#lanes = undefined;
    // Somebody else knows better from here on.
    this.#summary = NOTHING_KNOWN;
  }

  #call<T>(what: string, call: () => Promise<T>): Promise<T> {
    return this.#parts.calls.run(what, call);
  }

  #wake(): void {
    this.#woken = true;
    this.#wait?.timer.cancel();
    this.#wait?.end();
  }

  /** Until something happens, and no longer than `limitMs`. */
  async #rest(limitMs: number): Promise<void> {
    if (!this.#woken && !this.#draining)
      await new Promise<void>((end) => {
        this.#wait = { timer: this.#parts.clock.setTimer(Math.max(0, limitMs), end), end };
      });
    this.#wait = undefined;
    this.#woken = false;
  }

  /** @returns whether that is new. */
  #become(role: OutboxHealth['role'], reason?: Error): boolean {
    const isNew = this.#role !== role || !this.#told;
    this.#role = role;
    this.#reason = reason?.message;
    this.#told = true;
    return isNew;
  }

  /** The first role is told too. */
  #told = false;

  get #fields(): { readonly store: string } {
    return { store: this.#parts.store.name };
  }
}
