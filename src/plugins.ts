// Entry point `pulsework/plugins`: plugins that are ready for use. They know only ports; here they get what this system
// has for them.
import type { DrainOnSignalsOptions } from './plugins/drain-on-signals.js';
import { drainOnSignals as drainOnSignalsOf } from './plugins/drain-on-signals.js';
import type { Plugin } from './ports/plugin.js';
import { systemProcessSignals } from './system/process-signals.js';

export { auditLog } from './plugins/audit-log.js';
export type { AuditCounts, AuditLog, AuditLogOptions, AuditRecord } from './plugins/audit-log.js';
export { healthEndpoint } from './plugins/health-endpoint.js';
export type { HealthEndpoint, HealthEndpointOptions } from './plugins/health-endpoint.js';
export { rateLimit } from './plugins/rate-limit.js';
export type { RateLimitOptions } from './plugins/rate-limit.js';
export type { DrainOnSignalsOptions } from './plugins/drain-on-signals.js';
export { slowHandlerWarning } from './plugins/slow-handler-warning.js';
export type { SlowHandlerWarningOptions } from './plugins/slow-handler-warning.js';
export type { ProcessSignals } from './ports/process-signals.js';

/**
 * Drains the runtime at the first SIGTERM or SIGINT and closes it at once at the second; a third has its usual effect. It
 * never ends the process: that ends by itself when nothing is left to do, or where `runtime.closed` is awaited.
 * @throws ConfigurationError on an option that is unknown or wrong, such as a signal that nobody can listen for.
 */
export function drainOnSignals(options: DrainOnSignalsOptions = {}): Plugin {
  return drainOnSignalsOf(options, systemProcessSignals);
}
