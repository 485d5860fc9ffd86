// Option checking: every problem is collected, so that one ConfigurationError can report all of them.
// An option set to `undefined` is absent. An unknown option is a problem with a suggestion, never ignored.
import { ConfigurationError, describeValue } from './errors.js';

/** The longest delay accepted anywhere: 100 years. Above it date arithmetic is a mistake, not a wish. */
export const MAX_DURATION_MS = 100 * 365 * 24 * 3_600_000;

export const seconds = (n: number): number => n * 1_000;
export const minutes = (n: number): number => n * 60_000;
export const hours = (n: number): number => n * 3_600_000;
export const days = (n: number): number => n * 86_400_000;

/** Milliseconds, 0 or more, that are still exact when they are added to a time. */
export function isDurationMs(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MAX_DURATION_MS;
}

/** Collects the problems of one options object. `subject` opens each sentence, e.g. `handler "Billing.charge"`. */
export class OptionChecker {
  readonly problems: string[] = [];
  readonly #subject: string;

  constructor(subject = '') {
    this.#subject = subject;
  }

  problem(sentence: string): void {
    this.problems.push(this.#subject === '' ? sentence : `${this.#subject}: ${sentence}`);
  }

  /** Throws one ConfigurationError when any problem was found. */
  throwIfAny(): void {
    if (this.problems.length > 0) throw new ConfigurationError(this.problems);
  }

  /** False (and a problem) unless `value` is a plain options object. @param hint what to write, e.g. `{ fallbackTopic }`. */
  object(name: string, value: unknown, hint?: string): value is Record<string, unknown> {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return true;
    this.problem(`${JSON.stringify(name)} must be an object${suffix(hint)}, got ${describeValue(value)}`);
    return false;
  }

  /**
   * The options of a call: an object, with no others than `known`.
   * @throws ConfigurationError, with what was found before, for what is no object: no further check could read it.
   */
  options(options: object, known: readonly string[]): void {
    if (this.object('options', options)) this.unknownOptions(options, known);
    else this.throwIfAny();
  }

  /**
   * Fields that must be there, each with what it must be, e.g. `{ handle: 'a function' }`. Their values are for the other
   * checks, which say nothing of what is absent.
   */
  required(options: object, fields: Readonly<Record<string, string>>, prefix = ''): void {
    for (const [name, rule] of Object.entries(fields)) {
      if ((options as Readonly<Record<string, unknown>>)[name] !== undefined) continue;
      this.problem(`${JSON.stringify(prefix + name)} is missing; it must be ${rule}`);
    }
  }

  /**
   * @param prefix where the options stand, e.g. `redelivery.`.
   * @param named what is listed and suggested, where that is more than what may stand here.
   */
  unknownOptions(options: object, known: readonly string[], prefix = '', named: readonly string[] = known): void {
    for (const key of Object.keys(options)) {
      if (known.includes(key)) continue;
      const near = nearest(key, named);
      const hint =
        near === undefined ? `known options are ${named.join(', ')}` : `did you mean ${JSON.stringify(near)}?`;
      this.problem(`unknown option ${JSON.stringify(prefix + key)}, ${hint}`);
    }
  }

  positiveInteger(name: string, value: unknown): void {
    if (value === undefined) return;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return;
    this.problem(`${JSON.stringify(name)} must be a positive integer, got ${describeValue(value)}`);
  }

  /** Milliseconds, 0 to 100 years; `Infinity` only where `infinite` allows it. */
  durationMs(
    name: string,
    value: unknown,
    limits: { readonly minMs?: number; readonly infinite?: boolean } = {},
  ): void {
    if (value === undefined) return;
    const minMs = limits.minMs ?? 0;
    if (limits.infinite === true && value === Infinity) return;
    if (isDurationMs(value) && value >= minMs) return;
    const rule = minMs === 0 ? 'a duration of 0 ms or more' : `a duration of at least ${minMs} ms`;
    this.problem(`${JSON.stringify(name)} must be ${rule} (in milliseconds), got ${describeValue(value)}`);
  }

  oneOf(name: string, value: unknown, allowed: readonly string[]): void {
    if (value === undefined || (typeof value === 'string' && allowed.includes(value))) return;
    this.problem(`${JSON.stringify(name)} must be one of ${allowed.join(', ')}, got ${describeValue(value)}`);
  }

  nonEmptyString(name: string, value: unknown): void {
    if (value === undefined || (typeof value === 'string' && value.trim() !== '')) return;
    this.problem(`${JSON.stringify(name)} must be a text that is not empty, got ${describeValue(value)}`);
  }

  /** @param hint where to get one, e.g. `fixedBackoff(500)`. */
  function(name: string, value: unknown, hint?: string): void {
    if (value === undefined || typeof value === 'function') return;
    this.problem(`${JSON.stringify(name)} must be a function${suffix(hint)}, got ${describeValue(value)}`);
  }

  /** An object with these methods; `hint` says where to get one. */
  methods(name: string, value: unknown, methods: readonly string[], hint: string): void {
    if (value === undefined || methods.every((method) => hasMethod(value, method))) return;
    const rule = `must have the methods ${methods.join(', ')} (${hint})`;
    this.problem(`${JSON.stringify(name)} ${rule}, got ${describeValue(value)}`);
  }

  /** An object with at least one of these methods. */
  anyMethod(name: string, value: unknown, methods: readonly string[], hint: string): void {
    if (value === undefined || methods.some((method) => hasMethod(value, method))) return;
    const rule = `must have at least one of the methods ${methods.join(', ')} (${hint})`;
    this.problem(`${JSON.stringify(name)} ${rule}, got ${describeValue(value)}`);
  }

  boolean(name: string, value: unknown): void {
    if (value === undefined || typeof value === 'boolean') return;
    this.problem(`${JSON.stringify(name)} must be true or false, got ${describeValue(value)}`);
  }
}

function hasMethod(value: unknown, name: string): boolean {
  try {
    return (
      typeof value === 'object' && value !== null && typeof (value as Record<string, unknown>)[name] === 'function'
    );
  } catch {
    // A getter that throws gives no method.
    return false;
  }
}

function suffix(hint: string | undefined): string {
  return hint === undefined ? '' : ` such as ${hint}`;
}

/** The known word that `key` most likely meant; undefined when none is near (more than a third of it differs). */
function nearest(key: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(key.length / 3)) + 1;
  for (const word of known) {
    const distance = editDistance(key.toLowerCase(), word.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [word, distance];
  }
  return best;
}

/** Levenshtein distance: how many letters to insert, delete or change. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, change));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

type Present<T> = { readonly [K in keyof T]: Exclude<T[K], undefined> };

/** An option set to `undefined` is absent: it must not hide a default. */
export function withoutAbsent<T extends object>(options: T): Partial<Present<T>> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<Present<T>>;
}
