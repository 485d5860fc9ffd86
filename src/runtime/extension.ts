// What a layer on top of the runtime adds to one that runs: handlers of its own, and a share in its end. Not for users: they
// give their handlers to `Runtime.start`.
import type { GlobalGuard } from '../ports/global-guard.js';
import type { RuntimeOptions } from './runtime-options.js';
import type { ResolvedRuntimeOptions } from './runtime-options.js';
import type { Publishers } from './publishers.js';
import type { Runtime } from './runtime.js';
import type { TelemetryHost } from './telemetry-host.js';

export interface RuntimeExtension {
  readonly handlers: RuntimeOptions['handlers'];
  /** With the handlers of the runtime: it takes nothing new, and resolves when what runs has ended. */
  drain(): Promise<void>;
  /** Past the deadline of the drain: what runs is told to end. */
  interrupt(reason: Error): void;
  /** When nothing runs any more, before the publishers are closed. */
  close(): Promise<void>;
}

/** What it gets of the runtime. */
export interface ExtensionGround {
  readonly options: ResolvedRuntimeOptions;
  readonly publishers: Publishers;
  readonly telemetry: TelemetryHost;
  readonly globalGuard: GlobalGuard;
  readonly fullName: (name: string) => string;
}

type Extend = (extensionOf: (ground: ExtensionGround) => RuntimeExtension) => Promise<void>;

const EXTENDERS = new WeakMap<object, Extend>();

/** Told by a runtime about itself. */
export function extensible(runtime: Runtime, extend: Extend): void {
  EXTENDERS.set(runtime, extend);
}

/** Undefined for what is no runtime of this copy of the package. */
export function extenderOf(runtime: unknown): Extend | undefined {
  return typeof runtime === 'object' && runtime !== null ? EXTENDERS.get(runtime) : undefined;
}
