// The same tree over time, as a picture (SVG): a bar for each span, red where it failed.
import { factsOf, isError } from './span-tree.js';
import type { SpanNode } from './span-tree.js';

const WIDTH = 960;
const ROW = 26;
const TOP = 44;
const BARS = 330;
const MARGIN = 20;
/** Steps of the scale in milliseconds; the first that gives at most 8 of them is taken. */
const STEPS = [10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];
const MIN_BAR = 3;
const FONT = 'font-family="ui-sans-serif, system-ui, \'DejaVu Sans\', sans-serif"';

export function pictureOf(tree: readonly SpanNode[]): string {
  const start = Math.min(...tree.map(({ span }) => milliseconds(span.startTimeUnixNano)));
  const length = Math.max(...tree.map(({ span }) => milliseconds(span.endTimeUnixNano))) - start;
  const x = (ms: number): number => BARS + ((ms - start) / length) * (WIDTH - BARS - MARGIN);
  const height = TOP + tree.length * ROW + MARGIN;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" ${FONT} font-size="13">`,
    '  <title>One order over three attempts and its dead letter, in one trace</title>',
    `  <rect width="${WIDTH}" height="${height}" rx="8" fill="#ffffff" stroke="#d0d7de"/>`,
    ...scale(length, height, (ms) => x(start + ms)),
    ...tree.flatMap((node, row) => bar(node, TOP + row * ROW, x)),
    '</svg>',
    '',
  ].join('\n');
}

function scale(length: number, height: number, x: (ms: number) => number): string[] {
  const step = STEPS.find((ms) => length / ms <= 8) ?? length;
  const marks = Array.from({ length: Math.floor(length / step) + 1 }, (_, index) => index * step);
  return marks.flatMap((ms) => [
    `  <line x1="${round(x(ms))}" y1="${TOP - 10}" x2="${round(x(ms))}" y2="${height - 12}" stroke="#eaeef2"/>`,
    `  <text x="${round(x(ms))}" y="${TOP - 18}" fill="#656d76" font-size="11" text-anchor="middle">${ms} ms</text>`,
  ]);
}

function bar({ span, name, depth }: SpanNode, y: number, x: (ms: number) => number): string[] {
  const from = x(milliseconds(span.startTimeUnixNano));
  const width = Math.max(MIN_BAR, x(milliseconds(span.endTimeUnixNano)) - from);
  const facts = factsOf(span).join(', ');
  // What finds no room on the right of its bar stands on the left.
  const right = from + width < BARS + (WIDTH - BARS) / 2;
  const place = right ? `x="${round(from + width + 6)}"` : `x="${round(from - 6)}" text-anchor="end"`;
  return [
    `  <text x="${MARGIN + depth * 16}" y="${y + 16}" fill="#1f2328">${escaped(name)}</text>`,
    `  <rect x="${round(from)}" y="${y + 5}" width="${round(width)}" height="15" rx="2" fill="${colorOf(span)}"/>`,
    ...(facts === '' ? [] : [`  <text ${place} y="${y + 16}" fill="#59636e" font-size="11">${escaped(facts)}</text>`]),
  ];
}

function colorOf(span: SpanNode['span']): string {
  if (isError(span)) return '#cf222e';
  return span.name.startsWith('send ') ? '#0969da' : '#1a7f37';
}

function milliseconds(nanoseconds: bigint): number {
  // First to microseconds: nanoseconds since 1970 are more than a number can count.
  return Number(nanoseconds / 1_000n) / 1_000;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
