// Spans as a tree, in the order in which they started, each with a number in place of its id, which is another each time.
import type { CollectedSpan } from './collector.js';

export interface SpanNode {
  /** From 1. */
  readonly number: number;
  readonly depth: number;
  readonly span: CollectedSpan;
  /** Without what differs from broker to broker. */
  readonly name: string;
  /** Numbers of the spans it links to; 0 for one that did not arrive. */
  readonly links: readonly number[];
}

const KINDS = ['', 'internal', 'server', 'client', 'producer', 'consumer'];
const STATUS_ERROR = 2;

/** Parents first. */
export function spanTree(spans: readonly CollectedSpan[]): readonly SpanNode[] {
  const started = spans.toSorted((a, b) => Number(a.startTimeUnixNano - b.startTimeUnixNano));
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const ordered: { readonly span: CollectedSpan; readonly depth: number }[] = [];
  const visit = (span: CollectedSpan, depth: number): void => {
    ordered.push({ span, depth });
    for (const child of started) if (child.parentSpanId === span.spanId) visit(child, depth + 1);
  };
  for (const span of started) if (!ids.has(span.parentSpanId ?? '')) visit(span, 0);
  const numberOf = (id: string): number => ordered.findIndex(({ span }) => span.spanId === id) + 1;
  return ordered.map(({ span, depth }, index) => ({
    number: index + 1,
    depth,
    span,
    name: shortName(span.name),
    links: span.links.map(({ spanId }) => numberOf(spanId)),
  }));
}

export function treeLines(nodes: readonly SpanNode[]): readonly string[] {
  return nodes.map((node) => {
    const name = `${'  '.repeat(node.depth)}${node.name}`;
    const links = node.links.map((number) => `links to ${number}`).join(', ');
    const words = [kindOf(node.span).padEnd(8), ...factsOf(node.span), links].filter((word) => word !== '');
    return `${String(node.number).padStart(2)} ${name.padEnd(36)}  ${words.join('  ')}`.trimEnd();
  });
}

export function isError({ status }: CollectedSpan): boolean {
  return status.code === STATUS_ERROR;
}

/** What its attributes and status say, as people say it. */
export function factsOf(span: CollectedSpan): readonly string[] {
  const { attributes, status } = span;
  const attempt = attributes.get('pulsework.attempt');
  const delay = attributes.get('pulsework.delay_ms');
  const cause = attributes.get('pulsework.dead_letter.cause');
  const kind = attributes.get('pulsework.publish.kind');
  return [
    kind === undefined || kind === 'message' ? '' : String(kind),
    attempt === undefined ? '' : `attempt ${attempt}`,
    String(attributes.get('pulsework.outcome') ?? ''),
    delay === undefined ? '' : `again after ${delay} ms`,
    cause === undefined ? '' : `given up: ${cause}`,
    isError(span) ? `ERROR ${String(attributes.get('error.type') ?? status.message)}` : '',
  ].filter((fact) => fact !== '');
}

function kindOf({ kind }: CollectedSpan): string {
  return KINDS[kind] ?? '';
}

/** On a real broker each run of an example has topics of its own. */
function shortName(name: string): string {
  return name.replace('persistent://public/default/', '').replace(/example-[0-9a-f-]{36}-/, '');
}
