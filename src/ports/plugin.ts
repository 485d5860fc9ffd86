// What a plugin can do. `around*` hooks are part of the run: what they throw fails it. Observers are not: what they
// throw is contained and logged. Order: by `after`, then as listed; the first is the outermost.
import type { Delivery } from '../core/delivery.js';
import type { EncodedMessage } from '../core/message.js';
import type { Outcome } from '../core/outcome.js';
import type { RuntimeControl } from './runtime-view.js';
import type { SettlementReport } from './telemetry.js';

export interface Plugin {
  /** Unique among a runtime's plugins. */
  readonly name: string;
  /** Names of plugins that must wrap around this one. A name that is missing or a cycle is refused at start. */
  readonly after?: readonly string[] | undefined;
  /** Wraps each run of a handler. Call `next` at most once; not calling it replaces the handler. */
  aroundHandler?(delivery: Delivery, next: () => Outcome | Promise<Outcome>): Outcome | Promise<Outcome>;
  /** Wraps each publish of a message that follows from an outcome or goes through `runtime.publisher`. */
  aroundPublish?(message: PublishRequest, next: (message: PublishRequest) => Promise<void>): Promise<void>;
  /** After everything is open, before the first delivery. A throw here fails the start. */
  onStart?(runtime: RuntimeControl): void | Promise<void>;
  onSettled?(report: SettlementReport): void;
  onDeadLettered?(report: SettlementReport): void;
  /** When the runtime takes no more. All plugins are told before any is waited for. */
  onDrain?(): void | Promise<void>;
  /**
   * When everything is closed. @param signal aborts when the runtime waits no longer (`callTimeoutMs` for all plugins
   * together). A runtime always gives one; it may be left out by who calls the hook by hand, as tests do.
   */
  onClose?(signal?: AbortSignal): void | Promise<void>;
}

export interface PublishRequest {
  /** Full topic name. */
  readonly topic: string;
  readonly message: EncodedMessage;
}
