// Traces across languages: the context that others put on messages is joined here, and the one put on here reaches them
// as it left. docs/interop.md lists what each test here shows.
import { afterEach, describe, expect } from 'vitest';
import { Runtime, bytesCodec, consoleLogger, defineHandler, success, topic } from 'pulsework';
import type { HandlerDefinition } from 'pulsework';
import { openTelemetry } from 'pulsework/otel';
import { wire } from 'pulsework/wire';
import { OtelSdk } from '../support/otel-sdk.js';
import { CLIENTS } from '../support/real-pulsar/each-client.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const SPAN_ID = 'b7ad6b7169203331';
/** As an agent of another language writes it: sampled, with a vendor's state and baggage. */
const CARRIED = {
  traceparent: `00-${TRACE_ID}-${SPAN_ID}-01`,
  tracestate: 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE',
  baggage: 'tenant=acme',
};
/** https://www.w3.org/TR/trace-context/#traceparent-header, version 00: ids of zeros are not valid. */
const W3C_TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

const runtimes: Runtime[] = [];
afterEach(async () => {
  for (const runtime of runtimes.splice(0)) await runtime.drain();
  OtelSdk.unregister();
});

/** A runtime has at least one handler; nothing is published to this one. */
const idle = (pulsar: SharedPulsar): HandlerDefinition =>
  defineHandler({ name: 'idle', source: pulsar.newTopic('idle'), subscription: 's', handle: () => success() });

async function startTraced(pulsar: SharedPulsar, handlers: readonly HandlerDefinition[]): Promise<Runtime> {
  const transport = wire({ serviceUrl: pulsar.serviceUrl });
  const logger = consoleLogger({ level: 'silent' });
  const runtime = await Runtime.start({ transport, handlers, logger, telemetry: openTelemetry() });
  runtimes.push(runtime);
  return runtime;
}

function registered(): OtelSdk {
  const sdk = new OtelSdk();
  sdk.register();
  return sdk;
}

for (const { client, test } of CLIENTS) {
  describe(client, () => {
    test(`the run of a message of ${client} is in its trace, and so is what ${client} gets from that run`, async ({
      pulsar,
      peer,
    }) => {
      const sdk = registered();
      const [name, answers] = [pulsar.newTopic('asked'), pulsar.newTopic('answered')];
      const answering = topic(answers, { codec: bytesCodec });
      const handler = defineHandler({
        name: 'answer',
        source: topic(name, { codec: bytesCodec }),
        subscription: 's',
        handle: ({ payload }) => success(answering.message(payload)),
      });
      const consumer = await peer.subscribe(pulsar.serviceUrl, answers, { subscription: 'desk' });
      await startTraced(pulsar, [handler]);
      await peer.produce(pulsar.serviceUrl, name, [{ value: 'hello', properties: { ...CARRIED, tenant: 'acme' } }]);
      const [answer] = await consumer.receive(1);
      await expect.poll(() => sdk.spans.length, { timeout: 20_000 }).toBe(2);

      const run = sdk.span(`process ${name}`);
      const send = sdk.span(`send ${answers}`);
      expect(run.spanContext().traceId).toBe(TRACE_ID);
      expect(run.parentSpanContext).toMatchObject({ traceId: TRACE_ID, spanId: SPAN_ID, isRemote: true });
      expect(run.links.map(({ context }) => [context.traceId, context.spanId])).toEqual([[TRACE_ID, SPAN_ID]]);
      expect(send.parentSpanContext?.spanId).toBe(run.spanContext().spanId);
      expect(answer?.properties).toMatchObject({
        ...CARRIED,
        traceparent: `00-${TRACE_ID}-${send.spanContext().spanId}-01`,
      });
    });

    test(`${client} reads the trace context of a message published here, beside its own properties`, async ({
      pulsar,
      peer,
    }) => {
      const sdk = registered();
      const name = pulsar.newTopic();
      const runtime = await startTraced(pulsar, [idle(pulsar)]);
      const properties = { tenant: 'acme', ä: '日本' };
      await runtime.publisher(topic(name, { codec: bytesCodec })).publish(Buffer.from('hello'), { properties });

      const [message] = await peer.readAll(pulsar.serviceUrl, name);
      const { traceId, spanId } = sdk.span(`send ${name}`).spanContext();
      const traceparent = `00-${traceId}-${spanId}-01`;
      expect(traceparent).toMatch(W3C_TRACEPARENT);
      expect(message?.properties).toEqual({ ...properties, traceparent });
    });
  });
}
