// explain(): the words for several kinds of handlers. That they are true is test/scenario/runtime/explained-schedule.test.ts.
import { describe, expect, it } from 'vitest';
import type { HandlerExplanation, HandlerOptions } from '../../../src/index.js';
import {
  ConfigurationError,
  defineHandler,
  explain,
  exponentialBackoff,
  fixedBackoff,
  minutes,
  on,
  poison,
  seconds,
  steppedBackoff,
  success,
  topic,
} from '../../../src/index.js';
import { memoryAttemptStore } from '../../../src/testing.js';
import { World } from '../../support/runtime-world.js';

function explained(options: Partial<HandlerOptions> = {}): HandlerExplanation {
  const [handler] = explain([worker(options)]).handlers;
  if (handler === undefined) throw new Error('nothing was explained');
  return handler;
}

const jobs = { name: 'worker', source: topic('jobs'), subscription: 'workers' };

function worker(options: Partial<HandlerOptions> = {}) {
  return defineHandler({ ...jobs, ...options, handle: () => success() });
}

/** Lines of the text that belong to one of its names. */
function section(name: string, options: Partial<HandlerOptions> = {}): readonly string[] {
  const lines = explained(options).text.split('\n');
  const start = lines.findIndex((line) => line.startsWith(`  ${name} `));
  const rest = lines.slice(start + 1);
  const more = rest.findIndex((line) => /^ {2}\S/.test(line));
  return [lines[start]?.slice(name.length + 2) ?? '', ...rest.slice(0, more)].map((line) => line.trim());
}

describe('the text', () => {
  it('says everything about a handler with defaults', () => {
    expect(explain([worker()]).text).toMatchInlineSnapshot(`
      "worker
        from          persistent://public/default/jobs
        subscription  workers, shared, 16 runs at a time
        to            anywhere
        order         none: messages go to any process in any order
        errors        every error is retry
        deliveries    10 at most, runs without a time limit
        waits         after delivery 1: 1 s, held by id
                      after delivery 2: 2 s, held by id
                      after delivery 3: 4 s, held by id
                      after delivery 4: 8 s, held by id
                      after delivery 5: 16 s, held by id
                      after delivery 6: 32 s, held by id
                      after delivery 7: 1 min 4 s, held by id
                      after delivery 8: 2 min 8 s, held by id
                      after delivery 9: 4 min 16 s, held by id
        deferrals     kept in place
        deliverAt     kept by the broker until then
        limit         1000 messages waiting here; then the subscription pauses
        given up      dead letter to persistent://public/default/jobs-workers-DLQ, kept for subscription workers
                      a dead letter that is refused for good is tried again, and its message stays
                      at most 8 min 31 s and the time of 10 runs after the first delivery began; deferrals, outages, pauses, waiting for a free slot, and delays that an outcome names itself come on top
        if the process dies
          before the run:
            the broker delivers it again, no attempt spent
          during the run:
            it runs again, and the run that died is not counted: a message that kills its process does so again and again
          after a follow-up was published, before the acknowledgement:
            it runs again and its follow-ups are published again, each with the same pulsework-message-id
          while held by id:
            the broker delivers it again at once: the rest of the wait is lost, and the broker has not counted the failure before it
          while kept in place:
            the broker delivers it again at once: the rest of the wait is lost
          after its dead letter was published, before the acknowledgement:
            it is delivered again; a second dead letter would have the same ORIGIN_MESSAGE_ID
          which attempt it is then:
            by the broker's count while another consumer is connected, outside producer batches; else attempt 1 again"
    `);
  });

  it('says what a handler with a retry letter topic, a time limit and rules does', () => {
    const text = explained({
      type: 'key-shared',
      retryTopic: true,
      timeoutMs: seconds(30),
      abandonAfterMs: seconds(5),
      ackTimeoutMs: seconds(60),
      onError: [on(TypeError, poison)],
      outage: [{ dependency: 'the database', errors: [RangeError, SyntaxError] }, { dependency: 'the bank' }],
      publishes: [topic('done')],
      onDeadLetterRefused: { fallbackTopic: 'too-large' },
      redelivery: { maxDeliveries: 4, backoff: steppedBackoff([seconds(60), minutes(2)]) },
    }).text;

    expect(text).toMatchInlineSnapshot(`
      "worker
        from          persistent://public/default/jobs
        subscription  workers, key-shared, 16 runs at a time
        to            persistent://public/default/done
        order         none: messages of one key go to one process at a time, where up to 16 run at a time and later ones pass one that failed
        errors        onError has rules for TypeError
                      the database is down: RangeError, SyntaxError
                      waits along while another handler finds the bank down
                      every other error is retry
        deliveries    4 at most, runs of at most 30 s, and 5 s more to end; one that runs for 1 min is asked back
        waits         after delivery 1: 1 min, held by id
                      after deliveries 2 to 3: 2 min, published again
        deferrals     kept in place; longer than 1 min, published again to persistent://public/default/jobs-workers-RETRY
        deliverAt     kept by the broker until then
        limit         1000 messages waiting here; then further waits are published again, however short
        given up      dead letter to persistent://public/default/jobs-workers-DLQ, kept for subscription workers
                      a dead letter that is refused for good goes to persistent://public/default/too-large
                      at most 7 min 20 s after the first delivery began; deferrals, outages, pauses, waiting for a free slot, and delays that an outcome names itself come on top
        if the process dies
          before the run:
            the broker delivers it again, no attempt spent
          during the run:
            it runs again, and the run that died is not counted: a message that kills its process does so again and again
          after a follow-up was published, before the acknowledgement:
            it runs again and its follow-ups are published again, each with the same pulsework-message-id
          while held by id:
            the broker delivers it again at once: the rest of the wait is lost, and the broker has not counted the failure before it
          while kept in place:
            the broker delivers it again at once: the rest of the wait is lost
          after its retry letter was published, before the acknowledgement:
            both live on: the letter runs when it is due, and the message is delivered again at once
          while it waits in the retry letter topic:
            nothing: the wait and the attempts are with the broker
          after its dead letter was published, before the acknowledgement:
            it is delivered again; a second dead letter would have the same ORIGIN_MESSAGE_ID
          which attempt it is then:
            a retry letter carries its attempts; otherwise by the broker's count while another consumer is connected, outside producer batches; else attempt 1 again"
    `);
  });

  it('says what order costs', () => {
    const text = explained({
      type: 'failover',
      ordering: 'partition',
      onDeadLetter: 'block-key',
      publishes: [],
      redelivery: { maxDeliveries: 1 },
    }).text;

    expect(text).toMatchInlineSnapshot(`
      "worker
        from          persistent://public/default/jobs
        subscription  workers, failover, 1 run at a time
        to            nowhere
        order         messages of one partition run one after the other, as published: the next starts only after the one before was acknowledged (one that is given up blocks its partition until a person decides); other partitions go on
        errors        every error is retry
        deliveries    1 at most, runs without a time limit
        waits         none: a message is delivered once
        deferrals     kept in place
        deliverAt     kept in place until then
        limit         1000 messages waiting here; then the subscription pauses
        given up      kept unacknowledged, and its key waits, until a person releases it or skips it; then
                      dead letter to persistent://public/default/jobs-workers-DLQ, kept for subscription workers
                      a dead letter that is refused for good is tried again, and its message stays
                      at most the time of 1 run after the first delivery began; deferrals, outages, pauses, waiting for a free slot, and delays that an outcome names itself come on top
        if the process dies
          before the run:
            the broker delivers it again, no attempt spent
          during the run:
            it runs again, and the run that died is not counted: a message that kills its process does so again and again
          after a follow-up was published, before the acknowledgement:
            cannot be: it declares that it publishes nothing
          while kept in place:
            the broker delivers it again at once: the rest of the wait is lost
          while its key is blocked:
            it is delivered again, and its key after it
          which attempt it is then:
            attempt 1 again: failures were counted here only"
    `);
  });

  it('of several handlers is one page with a gap between them', () => {
    const second = { ...worker({ deadLetter: 'skip' }), name: 'second', subscription: 'others' };
    const { handlers, text } = explain([worker(), second]);

    expect(handlers.map(({ handler }) => handler)).toEqual(['worker', 'second']);
    expect(text).toBe(handlers.map((each) => each.text).join('\n\n'));
  });

  it('tells of a crash once where it does the same to several handlers', () => {
    const second = { ...worker(), name: 'second', subscription: 'others' };
    const third = { ...worker({ deadLetter: 'block' }), name: 'third', subscription: 'yet others' };
    const { handlers, text } = explain([worker(), second, third]);
    const [first, again, other] = handlers.map((each) => each.text);

    expect(again?.split('\n').slice(-3)).toEqual(first?.split('\n').slice(-3));
    const start = (again ?? '').indexOf('  if the process dies');
    const shortened = `${(again ?? '').slice(0, start)}  if the process dies: as worker above`;
    expect(text).toBe([first, shortened, other].join('\n\n'));
  });
});

describe('a wait', () => {
  it('with jitter has both ends of it', () => {
    const backoff = exponentialBackoff({ minMs: 1_000, maxMs: 4_000, jitter: 'equal' });
    const { waits, worstCaseMs } = explained({ redelivery: { maxDeliveries: 4, backoff } });

    expect(waits.map(({ minMs, maxMs }) => [minMs, maxMs])).toEqual([
      [500, 1_000],
      [1_000, 2_000],
      [2_000, 4_000],
    ]);
    expect(worstCaseMs).toBe(7_000);
  });

  it('that only its jitter makes long is held or published again', () => {
    const backoff = exponentialBackoff({ minMs: minutes(20), maxMs: minutes(20), jitter: 'full' });

    expect(section('waits', { retryTopic: true, redelivery: { maxDeliveries: 2, backoff } })).toEqual([
      'after delivery 1: 0 ms to 19 min 59.999 s, held by id or published again',
    ]);
  });

  it('that is long and has no retry letter topic says that it is held', () => {
    const backoff = fixedBackoff(minutes(11));

    expect(section('waits', { redelivery: { maxDeliveries: 3, backoff } })).toEqual([
      'after deliveries 1 to 2: 11 min, held by id (long, but there is no retry letter topic)',
    ]);
  });

  it('whose policy fails is the default one, there only', () => {
    const backoff = (redeliveries: number): number => {
      if (redeliveries === 1) throw new Error('no such step');
      return 5_000;
    };
    const { waits } = explained({ redelivery: { maxDeliveries: 4, backoff } });

    expect(waits.map(({ maxMs }) => maxMs)).toEqual([5_000, 2_000, 5_000]);
    expect(waits[1]?.policyFailure).toBe('the backoff threw on redelivery 1');
    expect(section('waits', { redelivery: { maxDeliveries: 4, backoff } })[1]).toBe(
      'after delivery 2: 2 s, held by id (the default: the backoff threw on redelivery 1)',
    );
  });

  it('is not asked for when there are more than anybody reads', () => {
    const { waits, worstCaseMs, text } = explained({ redelivery: { maxDeliveries: Number.MAX_SAFE_INTEGER } });

    expect([waits.length, worstCaseMs]).toEqual([1_000, undefined]);
    expect(text).toContain('no time is worked out for 9007199254740991 deliveries');
  });
});

describe('explain', () => {
  it('uses names and policy as the runtime would', () => {
    const options = {
      namespace: 'acme/prod',
      topics: (name: string) => `test-${name}`,
      redelivery: { maxDeliveries: 2 },
    };
    const [handler] = explain([worker({ publishes: [topic('done')] })], options).handlers;

    expect(handler).toMatchObject({
      from: ['persistent://acme/prod/test-jobs'],
      to: ['persistent://acme/prod/test-done'],
      deadLetters: ['persistent://acme/prod/test-jobs-workers-DLQ'],
      maxDeliveries: 2,
    });
  });

  it('tells of transactions: what goes into one, and that a crash leaves all of it or nothing', () => {
    const [handler] = explain([
      worker({ publishes: [topic('done')], transactional: { timeoutMs: seconds(5) } }),
    ]).handlers;

    expect(handler?.transactionTimeoutMs).toBe(5_000);
    expect(handler?.text).toContain('in one transaction with the acknowledgement, for 5 s at most');
    expect(handler?.crashes).toContainEqual({
      stage: 'in the middle of its transaction',
      consequence:
        'all of it counts or nothing; where nothing, it runs again once the broker has ended the transaction, after 5 s',
    });
  });

  it('tells what an attempt store changes', () => {
    const consequences = (options = {}): string[] =>
      explain([worker()], options).handlers[0]?.crashes.map(({ consequence }) => consequence) ?? [];
    const changed = consequences({ attemptStore: memoryAttemptStore() }).filter((c, i) => c !== consequences()[i]);

    expect(changed).toMatchInlineSnapshot(`
      [
        "it runs again, alone in its process; only a death while it runs alone spends an attempt, in the end it is given up as process-died",
        "the broker delivers it again at once; the record says when it is due, and it goes on waiting",
        "the broker delivers it again at once; the record says when it is due, and it goes on waiting",
        "the next one: attempts are on record",
      ]
    `);
  });

  it('tells of a runtime what it tells of its handlers', async () => {
    const world = new World();
    const handlers = [worker({ retryTopic: true })];
    const runtime = await world.start({ handlers });

    expect(explain(runtime)).toEqual(explain(handlers));
    await world.end();
  });

  it('refuses what a runtime would refuse, all at once', () => {
    const wrong = [worker({ ordering: 'key' }), worker({ retryTopic: true, type: 'exclusive' }), class Plain {}];

    expect(() => explain(wrong)).toThrow(/class Plain(.|\n)*ordering: key(.|\n)*retryTopic/);
  });

  it.each([
    [undefined, {}, /it takes a runtime or a list of handlers, got undefined/],
    [[], { namespaces: 'a/b' }, /unknown option "namespaces", did you mean "namespace"\?/],
    [[], { namespace: 'acme', topics: 'x' }, /"namespace" must be(.|\n)*"topics" must be a function/],
    [[], null, /"options" must be an object/],
  ])('refuses %j with %j', (handlers, options, reason) => {
    const explaining = (): unknown => explain(handlers as never, options as never);
    expect(explaining).toThrow(ConfigurationError);
    expect(explaining).toThrow(reason);
  });
});

describe('of a batch handler', () => {
  const batch = { maxMessages: 5, maxWaitMs: 200 };

  it('the text says how batches are collected', () => {
    const handler = defineHandler({ ...jobs, batch, handle: (deliveries) => deliveries.map(() => success()) });

    expect(explain([handler]).text).toContain(
      'workers, shared, 16 batches of up to 5 messages, collected for 200 ms at most, at a time',
    );
  });
});
