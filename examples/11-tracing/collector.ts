// Stands for an OpenTelemetry collector: takes traces as OTLP over HTTP in JSON, on loopback, and keeps them. What it does
// not understand it refuses, as a collector does.
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { z } from 'zod';

const Attribute = z.object({
  key: z.string(),
  // Of the protocol's kinds of values those that can stand here.
  value: z.union([
    z.object({ stringValue: z.string() }).transform(({ stringValue }) => stringValue),
    z.object({ intValue: z.coerce.number() }).transform(({ intValue }) => intValue),
    z.object({ doubleValue: z.number() }).transform(({ doubleValue }) => doubleValue),
    z.object({ boolValue: z.boolean() }).transform(({ boolValue }) => boolValue),
  ]),
});
const Attributes = z
  .array(Attribute)
  .default([])
  .transform((all) => new Map(all.map(({ key, value }) => [key, value])));

const TraceId = z.string().regex(/^[0-9a-f]{32}$/);
const SpanId = z.string().regex(/^[0-9a-f]{16}$/);
const Nanoseconds = z.string().regex(/^\d+$/).transform(BigInt);
const Span = z.object({
  traceId: TraceId,
  spanId: SpanId,
  parentSpanId: SpanId.optional(),
  name: z.string(),
  kind: z.int(),
  startTimeUnixNano: Nanoseconds,
  endTimeUnixNano: Nanoseconds,
  attributes: Attributes,
  links: z.array(z.object({ traceId: TraceId, spanId: SpanId })).default([]),
  status: z.object({ code: z.int().default(0), message: z.string().optional() }),
});
const Request = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: Attributes }),
      scopeSpans: z.array(z.object({ scope: z.object({ name: z.string() }), spans: z.array(Span) })),
    }),
  ),
});

export type CollectedSpan = z.infer<typeof Span>;

export class Collector {
  readonly spans: CollectedSpan[] = [];
  readonly services = new Set<unknown>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(): Promise<Collector> {
    const collector = new Collector();
    await new Promise<void>((resolve, reject) => {
      collector.#server.once('error', reject).listen(0, '127.0.0.1', resolve);
    });
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1/traces`;
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    try {
      if (request.method !== 'POST' || request.url !== '/v1/traces') {
        answer(404, { message: 'no such place' });
        return;
      }
      this.#take(Request.parse(JSON.parse(await text(request))));
      answer(200, {});
    } catch (error) {
      answer(400, { message: String(error) });
    }
  }

  #take({ resourceSpans }: z.infer<typeof Request>): void {
    for (const { resource, scopeSpans } of resourceSpans) {
      this.services.add(resource.attributes.get('service.name'));
      for (const { spans } of scopeSpans) this.spans.push(...spans);
    }
  }
}
