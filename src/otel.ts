// Entry point `pulsework/otel`: traces and metrics through OpenTelemetry's API, an optional peer of this package.
export { openTelemetry } from './telemetry/open-telemetry.js';
export type { OpenTelemetryOptions } from './telemetry/open-telemetry-options.js';
