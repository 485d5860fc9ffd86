// What this process is: read once, passed in where needed. With system-clock and console-logger the only globals.
import { hostname } from 'node:os';

export interface Environment {
  readonly host: string;
  readonly processId: number;
  /** A number in [0, 1). */
  readonly random: () => number;
  /** The value of an environment variable; undefined when it is absent or empty. */
  variable(name: string): string | undefined;
}

export const systemEnvironment: Environment = {
  host: hostname(),
  processId: process.pid,
  random: () => Math.random(),
  variable: (name) => {
    const value = process.env[name];
    return value === '' ? undefined : value;
  },
};
