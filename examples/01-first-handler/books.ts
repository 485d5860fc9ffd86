// What the services write down. It stands for a database; entries have keys, so that writing one twice changes nothing.
import type { Receipt } from './orders.js';

export interface DeadOrder {
  /** Line of the input. */
  readonly line: number;
  readonly cause: string;
  readonly attempt: number;
  readonly reason: string;
}

export const books = {
  /** By order id. */
  receipts: new Map<string, Receipt>(),
  /** By line. */
  deadOrders: new Map<number, DeadOrder>(),
};
