import { describe, expect, it } from 'vitest';
import { OptionChecker } from '../../../src/core/options.js';
import type { Redact } from '../../../src/core/redaction.js';
import { checkRedact, redactText } from '../../../src/core/redaction.js';

const TEXT = 'card 4111111111111111, then card 4222222222222222';

describe('redactText', () => {
  it('leaves the text as it is without a rule', () => {
    expect(redactText(TEXT, undefined)).toBe(TEXT);
  });

  it.each([
    ['without flags', /\d{16}/],
    ['with g', /\d{16}/g],
    ['that is sticky', /\d{16}/y],
    ['that is sticky with g', /\d{16}/gy],
  ])('replaces every match of a pattern %s', (_, pattern) => {
    expect(redactText(TEXT, [pattern])).toBe('card [redacted], then card [redacted]');
  });

  it('replaces every match again when a pattern is used again', () => {
    const redact = [/\d{16}/g];
    redactText(TEXT, redact);
    expect(redactText(TEXT, redact)).toBe('card [redacted], then card [redacted]');
  });

  it('keeps the other flags of a pattern', () => {
    expect(redactText('Secret SECRET', [/secret/i])).toBe('[redacted] [redacted]');
  });

  it('applies patterns one after the other', () => {
    expect(redactText('a b', [/a/, /b/])).toBe('[redacted] [redacted]');
  });

  it('takes a function', () => {
    expect(redactText('token abc', (text) => text.replace('abc', '***'))).toBe('token ***');
  });

  it('lets nothing out when the function throws', () => {
    const redact: Redact = () => {
      throw new Error(TEXT);
    };
    expect(redactText(TEXT, redact)).toBe('[redaction failed]');
  });

  it('lets nothing out when the function gives no text', () => {
    expect(redactText(TEXT, (() => undefined) as never)).toBe('[redaction failed]');
  });
});

describe('checkRedact', () => {
  it.each([undefined, [], [/a/], (text: string) => text])('takes %s', (redact) => {
    const check = new OptionChecker();
    checkRedact(redact, check);
    expect(check.problems).toEqual([]);
  });

  it.each([['a'], [['a']], [/a/], [{}], [null]])('refuses %s', (redact) => {
    const check = new OptionChecker();
    checkRedact(redact, check);
    expect(check.problems[0]).toMatch(/^"redact" must be a list of regular expressions or a function, got /);
  });
});
