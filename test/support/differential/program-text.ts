// A differential program as text: what a person reads in a report, and what can be pasted as a case that stays.
import type { Program, Step } from './program.js';

export function stepText(step: Step): string {
  const { do: what, ...rest } = step;
  return Object.keys(rest).length === 0 ? what : `${what} ${JSON.stringify(rest)}`;
}

export function programText(program: Program): string {
  return JSON.stringify(program);
}
