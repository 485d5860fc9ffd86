// Which topics of a namespace a pattern means: the regular expression, the namespace before it, and what is never meant.
import { DEFAULT_NAMESPACE, withoutPartition } from './topic-name.js';
import { toError } from './errors.js';
import type { SubscriptionSpec } from './subscription-spec.js';

/** Topics that are stored, topics that are not, or both. */
export type PatternDomain = 'persistent' | 'non-persistent' | 'all';
export const PATTERN_DOMAINS: readonly PatternDomain[] = ['persistent', 'non-persistent', 'all'];

export interface TopicPattern {
  /** For logs and errors. */
  readonly text: string;
  /** `tenant/namespace`. */
  readonly namespace: string;
  readonly domain: PatternDomain;
  /** What a broker may be asked with, the narrowest first: each has all that `matches` has, or more. */
  readonly forBroker: readonly string[];
  /** @param topic full name, with or without its partition. */
  matches(topic: string): boolean;
}

const FORM = /^(?:(persistent|non-persistent):\/\/)?(?:([-=:.\w]+)\/([-=:.\w]+)\/)?(.+)$/s;
/**
 * What JavaScript, Java and RE2 read alike. A pattern with anything else (look-ahead, flags, a `/`) is asked for as the
 * whole namespace and applied here alone: a broker that cannot read a pattern closes the connection.
 */
const READ_ALIKE =
  /^(?:[-\w =~!@#%&,;'"<>]|\\[dDwW]|\\[-.*+?()[\]{}|$^\\]|\.|[*+?]|\{\d{1,3}(?:,\d{0,3})?\}|\((?:\?:|(?!\?))|\)|\||\[\^?(?:[-\w.=]|\\[-dDwW.])+\])+$/;
/** Local names of topics that brokers keep for themselves. */
const INTERNAL = /^__|__transaction_pending_ack$|^transaction_coordinator_assign$/;

/**
 * The pattern, or the sentence that says what is wrong with it. @param subscription whose retry and dead letter topics are
 * left out.
 */
export function topicPattern(
  pattern: string | RegExp,
  subscription: string,
  asked: PatternDomain | undefined,
): TopicPattern | string {
  const parts = partsOf(pattern, DEFAULT_NAMESPACE);
  if (typeof parts === 'string') return parts;
  const { namespace, regex, flags, domain } = parts;
  if (domain !== undefined && asked !== undefined && domain !== asked) {
    return `names ${domain} topics, but "patternDomain" is ${asked}`;
  }
  const expression = compiled(regex, flags);
  if (typeof expression === 'string') return expression;
  const means = { namespace, domain: domain ?? asked ?? 'persistent' };
  return {
    text: `${namespace}/${regex}`,
    ...means,
    forBroker: brokerPatterns(namespace, flags === '' ? regex : undefined),
    matches: matcher({ ...means, expression, subscription }),
  };
}

interface PatternParts {
  readonly domain: PatternDomain | undefined;
  readonly namespace: string;
  readonly regex: string;
  readonly flags: string;
}

/** Compiled once for each subscription: who asks asks often. */
const PATTERNS = new WeakMap<SubscriptionSpec, TopicPattern | string>();

/** Whether a subscription has this topic, by its name or by its pattern. @param topic full name, without its partition. */
export function takesFrom(spec: SubscriptionSpec, topic: string): boolean {
  const { topics, pattern, subscription } = spec;
  if (pattern === undefined) return topics.includes(topic);
  const parsed = PATTERNS.get(spec) ?? topicPattern(pattern, subscription, undefined);
  PATTERNS.set(spec, parsed);
  return typeof parsed !== 'string' && parsed.matches(topic);
}

/** The same pattern, which names its namespace where it did not; one that is wrong stays as it is. */
export function qualifiedPattern(pattern: RegExp, namespace: string): RegExp {
  const parts = partsOf(pattern, namespace);
  if (typeof parts === 'string') return pattern;
  const domain = parts.domain === undefined ? '' : `${parts.domain}://`;
  return new RegExp(`${domain}${parts.namespace}/${parts.regex}`, parts.flags);
}

function partsOf(pattern: string | RegExp, ownNamespace: string): PatternParts | string {
  const [source, flags] = typeof pattern === 'string' ? [pattern, ''] : [plainSource(pattern), pattern.flags];
  const [, domain, tenant, space, regex = ''] = FORM.exec(withoutAnchors(source)) ?? [];
  const namesSpace = tenant !== undefined && space !== undefined;
  // Without a namespace there is no place for a domain, and a slash would begin a form that is not known.
  if (regex === '' || (!namesSpace && (domain !== undefined || regex.includes('/')))) {
    return 'must be like "orders-.*", "tenant/namespace/orders-.*" or "persistent://tenant/namespace/orders-.*"';
  }
  return {
    domain: domain as PatternDomain | undefined,
    namespace: namesSpace ? `${tenant}/${space}` : ownNamespace,
    regex,
    // The others are about where to look in a longer text.
    flags: flags.replaceAll(/[gym]/g, ''),
  };
}

/** Without the backslashes that a RegExp literal needs before a slash. */
function plainSource({ source }: RegExp): string {
  return source.replaceAll('\\/', '/');
}

interface Meaning {
  readonly namespace: string;
  readonly domain: PatternDomain;
  readonly expression: RegExp;
  readonly subscription: string;
}

function matcher({ namespace, domain, expression, subscription }: Meaning): (topic: string) => boolean {
  const domains = domain === 'all' ? ['persistent', 'non-persistent'] : [domain];
  const prefixes = domains.map((one) => `${one}://${namespace}/`);
  const own = [`-${subscription}-RETRY`, `-${subscription}-DLQ`];
  return (topic) => {
    const name = withoutPartition(topic);
    const prefix = prefixes.find((one) => name.startsWith(one));
    if (prefix === undefined || own.some((end) => name.endsWith(end))) return false;
    const local = name.slice(prefix.length);
    return !INTERNAL.test(local) && expression.test(local);
  };
}

function brokerPatterns(namespace: string, regex: string | undefined): readonly string[] {
  const prefix = `persistent://${namespace}/`;
  const all = `${prefix}.*`;
  if (regex === undefined || regex === '.*' || !READ_ALIKE.test(regex)) return [all];
  return [`${prefix}${regex.includes('|') ? `(?:${regex})` : regex}`, all];
}

/** The whole name has to match, with or without them. */
function withoutAnchors(source: string): string {
  return source.replace(/^\^/, '').replace(/(?<!\\)((?:\\\\)*)\$$/, '$1');
}

function compiled(regex: string, flags: string): RegExp | string {
  try {
    return new RegExp(`^(?:${regex})$`, flags);
  } catch (error) {
    return `is no regular expression: ${toError(error).message}`;
  }
}
