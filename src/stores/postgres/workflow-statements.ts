// The SQL of the tables of workflows: one place that knows them. What is done most often is one statement. Such a statement sees what
// was committed before it began, also when it then waits for the row of a workflow that another one has: of that row alone it sees
// the newest. So whatever two may race for is in that row: epoch, version, the end of the lease, and the number of the last event.
import type {
  AcquireRequest,
  OutgoingRequest,
  WorkflowChange,
  WorkflowFilter,
  WorkflowKey,
  WorkflowWrite,
} from '../../ports/workflow-store.js';
import type { WorkflowState } from '../../ports/workflow-state.js';
import { CONSUMED_IDS_KEPT } from '../../ports/workflow-state.js';
import { hasEnded } from '../../core/workflow-journal.js';
import { storedText } from '../../core/stored-text.js';
import { keyColumn } from './key-column.js';
import { quotedName } from './postgres-format.js';
import { RECORD_COLUMNS, attributeText, inboxText, journalText, json, newRow, workflowKey } from './workflow-rows.js';

export interface Statement {
  readonly text: string;
  readonly values: unknown[];
}

/** Collects the values of a statement. @returns the place of each */
class Values {
  readonly list: unknown[] = [];

  readonly put = (value: unknown, type: string): string => `$${this.list.push(value)}::${type}`;
}

export class WorkflowStatements {
  readonly workflows: string;
  readonly #attributes: string;
  readonly #entries: string;
  readonly #events: string;
  readonly #signals: string;
  readonly #outgoing: string;

  constructor(schema: string) {
    const table = (name: string): string => `${quotedName(schema)}.${name}`;
    this.workflows = table('workflow');
    this.#attributes = table('workflow_attribute');
    this.#entries = table('workflow_entry');
    this.#events = table('workflow_event');
    this.#signals = table('workflow_signal');
    this.#outgoing = table('workflow_outgoing');
  }

  /** One row where there was none of that key. Signals that were kept for it become its own. Under the lock of the key. */
  start(state: WorkflowState, nowMs: number): Statement {
    const { list: values, put } = new Values();
    const key = put(workflowKey(state), 'text');
    const row = newRow(state, nowMs);
    const columns = Object.keys(row);
    const given = Object.values(row).map(({ value, type }) => put(value, type));
    const attributes = Object.entries(state.attributes).map(([name, value]) => attributeText(name, value));
    const text = `WITH kept AS MATERIALIZED (
        SELECT DISTINCT ON (event_id) seq, event_id, event FROM ${this.#signals}
        WHERE key = ${key} AND until_ms > ${put(nowMs, 'double precision')} ORDER BY event_id, seq),
      begun AS (
        INSERT INTO ${this.workflows} (key, ${columns.join(', ')}, last_event)
        VALUES (${key}, ${given.join(', ')}, (SELECT count(*) FROM kept)) ON CONFLICT (key) DO NOTHING RETURNING number),
      found AS (
        INSERT INTO ${this.#attributes} (attribute, workflow)
        SELECT DISTINCT a, begun.number FROM begun, unnest(${put(attributes, 'text[]')}) a),
      arrived AS (
        INSERT INTO ${this.#events} (workflow, seq, event_id, event)
        SELECT begun.number, row_number() OVER (ORDER BY kept.seq), kept.event_id, kept.event FROM begun, kept),
      gone AS (DELETE FROM ${this.#signals} WHERE key = ${key} AND EXISTS (SELECT 1 FROM begun))
      SELECT number FROM begun`;
    return { text, values };
  }

  /** One row where the event is new, and the workflow there and not ended. */
  append(key: WorkflowKey, eventId: string, event: string, nowMs: number): Statement {
    const { list: values, put } = new Values();
    const id = put(keyColumn(eventId), 'text');
    const text = `WITH found AS (
        UPDATE ${this.workflows} w
        SET last_event = w.last_event + 1, wake_ms = greatest(${put(nowMs, 'double precision')}, w.until_ms)
        WHERE w.key = ${put(workflowKey(key), 'text')} AND w.ended_ms IS NULL AND NOT EXISTS (
          SELECT 1 FROM ${this.#events} e WHERE e.workflow = w.number AND e.event_id = ${id})
        RETURNING w.number, w.last_event)
      INSERT INTO ${this.#events} (workflow, seq, event_id, event)
      SELECT number, last_event, ${id}, ${put(event, 'text')} FROM found RETURNING seq`;
    return { text, values };
  }

  /** Why nothing was appended. */
  look(key: WorkflowKey, eventId: string): Statement {
    const text = `SELECT w.ended_ms IS NOT NULL AS ended, EXISTS (
        SELECT 1 FROM ${this.#events} e WHERE e.workflow = w.number AND e.event_id = $2) AS known
      FROM ${this.workflows} w WHERE w.key = $1`;
    return { text, values: [workflowKey(key), keyColumn(eventId)] };
  }

  /** One row where it is new. */
  keepSignal(key: WorkflowKey, eventId: string, event: string, nowMs: number, untilMs: number): Statement {
    const text = `INSERT INTO ${this.#signals} (key, event_id, event, until_ms)
      SELECT $1::text, $2::text, $3::text, $4::double precision WHERE NOT EXISTS (
        SELECT 1 FROM ${this.#signals} WHERE key = $1 AND event_id = $2 AND until_ms > $5::double precision) RETURNING seq`;
    return { text, values: [workflowKey(key), keyColumn(eventId), event, untilMs, nowMs] };
  }

  /**
   * One row where it can be taken, with journal and inbox, which are `is_current` unless the statement had to wait for another one that
   * changed them. The journal is left out where it is known.
   */
  acquire(key: WorkflowKey, { owner, nowMs, leaseMs, known }: AcquireRequest): Statement {
    const { list: values, put } = new Values();
    const named = put(workflowKey(key), 'text');
    const now = put(nowMs, 'double precision');
    const until = put(nowMs + leaseMs, 'double precision');
    const [version, seed] = [put(known?.writeVersion ?? null, 'bigint'), put(json(known?.seed), 'text')];
    const text = `WITH held AS (
        UPDATE ${this.workflows} SET epoch = epoch + 1, owner = ${put(storedText(owner), 'text')}, until_ms = ${until}, wake_ms = ${until}
        WHERE key = ${named} AND ended_ms IS NULL AND until_ms <= ${now}
        RETURNING number, epoch, write_version, last_event, ${RECORD_COLUMNS}),
      seen AS (
        SELECT w.number, w.write_version AS version, w.last_event AS event, ${inboxText(this.#events, 'w.number')},
          CASE WHEN w.write_version = ${version} AND w.seed = ${seed} THEN NULL ELSE ${journalText(this.#entries, 'w.number')} END AS journal
        FROM ${this.workflows} w WHERE w.key = ${named})
      SELECT held.*, seen.journal, seen.inbox, seen.version = held.write_version AND seen.event = held.last_event AS is_current
      FROM held LEFT JOIN seen ON seen.number = held.number`;
    return { text, values };
  }

  /** Inbox and journal of a workflow that is held. */
  contents(number: unknown, withJournal: boolean): Statement {
    const parts = [
      inboxText(this.#events, '$1::bigint'),
      ...(withJournal ? [`${journalText(this.#entries, '$1::bigint')} AS journal`] : []),
    ];
    return { text: `SELECT ${parts.join(', ')}`, values: [number] };
  }

  renew(key: WorkflowKey, epoch: number, untilMs: number): Statement {
    const text = `WITH inbox AS (SELECT w.number AS workflow, ${this.#newestEvent('w')} AS newest, coalesce((
          SELECT max(e.seq) FROM ${this.#events} e WHERE e.workflow = w.number AND e.event IS NOT NULL), 0) AS unread
        FROM ${this.workflows} w WHERE w.key = $1)
      UPDATE ${this.workflows} w SET until_ms = $3, wake_ms = $3 FROM inbox
      WHERE w.number = inbox.workflow AND w.epoch = $2 AND w.owner IS NOT NULL
      RETURNING CASE WHEN w.last_event > inbox.newest THEN w.last_event ELSE inbox.unread END AS inbox_seq`;
    return { text, values: [workflowKey(key), epoch, untilMs] };
  }

  inbox(key: WorkflowKey, afterSeq: number): Statement {
    const text = `SELECT e.seq, e.event FROM ${this.#events} e JOIN ${this.workflows} w ON w.number = e.workflow
      WHERE w.key = $1 AND w.ended_ms IS NULL AND e.event IS NOT NULL AND e.seq > $2 ORDER BY e.seq`;
    return { text, values: [workflowKey(key), afterSeq] };
  }

  /** One row where the write is accepted. */
  write(key: WorkflowKey, write: WorkflowWrite): Statement {
    const { list: values, put } = new Values();
    const { change, consumed, entries, outgoing } = write;
    const isOver = change.status !== 'continued' && hasEnded(change.status);
    const parts = [this.#written(key, write, isOver, put)];
    if (isOver) parts.push(`gone AS (DELETE FROM ${this.#events} e USING written w WHERE e.workflow = w.number)`);
    else if (change.status === 'continued') parts.push(this.#forgetting(key, consumed, put));
    else if (consumed.length > 0)
      parts.push(`consumed AS (UPDATE ${this.#events} e SET event = NULL FROM written w
        WHERE e.workflow = w.number AND e.seq = ANY (${put([...consumed], 'bigint[]')}))`);
    if (change.status === 'continued')
      parts.push(`emptied AS (DELETE FROM ${this.#entries} j USING written w WHERE j.workflow = w.number)`);
    else if (entries.length > 0)
      parts.push(`added AS (INSERT INTO ${this.#entries} (workflow, entry) SELECT w.number, given.entry
        FROM written w, unnest(${put(
          entries.map((entry) => JSON.stringify(entry)),
          'text[]',
        )})
        WITH ORDINALITY AS given (entry, place) ORDER BY given.place)`);
    if (outgoing.length > 0) {
      const ids = put(
        outgoing.map(({ messageId }) => keyColumn(messageId)),
        'text[]',
      );
      const messages = put(
        outgoing.map(({ messageId, message }) => JSON.stringify({ messageId, message })),
        'text[]',
      );
      const named = put(outgoingKey(key), 'text');
      parts.push(`sends AS (INSERT INTO ${this.#outgoing} (workflow, key, message_id, message)
        SELECT w.number, ${named}, given.message_id, given.message FROM written w, unnest(${ids}, ${messages})
        WITH ORDINALITY AS given (message_id, message, place) ORDER BY given.place ON CONFLICT (message_id) DO NOTHING)`);
    }
    return { text: `WITH ${parts.join(', ')} SELECT write_version, was_released FROM written`, values };
  }

  /** Why a write was not accepted: it may have been before. */
  lastWrite(key: WorkflowKey): Statement {
    const text = `SELECT epoch, write_version, last_epoch, was_released FROM ${this.workflows} WHERE key = $1`;
    return { text, values: [workflowKey(key)] };
  }

  due(names: readonly string[], beforeMs: number, limit: number): Statement {
    const text = `SELECT beginning, wake_ms FROM ${this.workflows}
      WHERE wake_ms IS NOT NULL AND wake_ms <= $2 AND name = ANY ($1::text[]) ORDER BY wake_ms, name, id LIMIT $3`;
    return { text, values: [names.map(storedText), beforeMs, limit] };
  }

  hasOutgoing(owner: string, nowMs: number): Statement {
    const text = `SELECT 1 FROM ${this.#outgoing} WHERE owner IS NULL OR owner = $1 OR until_ms <= $2 LIMIT 1`;
    return { text, values: [storedText(owner), nowMs] };
  }

  /** By one at a time: what another one takes meanwhile it would not see. */
  takeOutgoing({ owner, nowMs, leaseMs, limit, exceptWorkflows = [] }: OutgoingRequest): Statement {
    const isOthers = (table: string): string =>
      `(${table}.owner <> $1::text AND ${table}.until_ms > $2::double precision)`;
    const text = `WITH picked AS (
        SELECT own.seq FROM ${this.#outgoing} own
        WHERE own.key <> ALL ($5::text[]) AND ${isOthers('own')} IS NOT TRUE AND NOT EXISTS (
          SELECT 1 FROM ${this.#outgoing} earlier
          WHERE earlier.workflow = own.workflow AND earlier.seq < own.seq AND ${isOthers('earlier')})
        ORDER BY own.seq LIMIT $4),
      taken AS (UPDATE ${this.#outgoing} o SET owner = $1::text, until_ms = $3 FROM picked
        WHERE o.seq = picked.seq RETURNING o.seq, o.key, o.message)
      SELECT key, message FROM taken ORDER BY seq`;
    return { text, values: [storedText(owner), nowMs, nowMs + leaseMs, limit, exceptWorkflows.map(outgoingKey)] };
  }

  sent(messageIds: readonly string[]): Statement {
    const text = `DELETE FROM ${this.#outgoing} WHERE message_id = ANY ($1::text[])`;
    return { text, values: [messageIds.map(keyColumn)] };
  }

  get(key: WorkflowKey): Statement {
    return { text: `SELECT ${RECORD_COLUMNS} FROM ${this.workflows} WHERE key = $1`, values: [workflowKey(key)] };
  }

  /** One statement, so that journal, inbox and record are of one moment. */
  read(key: WorkflowKey): Statement {
    const text = `SELECT ${RECORD_COLUMNS}, ${journalText(this.#entries, 'w.number')} AS journal, ${inboxText(this.#events, 'w.number')}
      FROM ${this.workflows} w WHERE w.key = $1`;
    return { text, values: [workflowKey(key)] };
  }

  count(names: readonly string[]): Statement {
    const text = `SELECT name, status, count(*) AS count FROM ${this.workflows}
      WHERE ended_ms IS NULL AND name = ANY ($1::text[]) GROUP BY name, status`;
    return { text, values: [names.map(storedText)] };
  }

  list({ name, status, createdFromMs, createdBeforeMs, after, attributes = {}, limit }: WorkflowFilter): Statement {
    const { list: values, put } = new Values();
    const bounds: string[] = [];
    if (name !== undefined) bounds.push(`name = ${put(storedText(name), 'text')}`);
    if (status !== undefined) bounds.push(`status = ${put(status, 'text')}`);
    if (createdFromMs !== undefined) bounds.push(`created_ms >= ${put(createdFromMs, 'double precision')}`);
    if (createdBeforeMs !== undefined) bounds.push(`created_ms < ${put(createdBeforeMs, 'double precision')}`);
    if (after !== undefined) {
      const place = [
        put(after.createdMs, 'double precision'),
        ...[after.name, after.id].map((t) => put(storedText(t), 'text')),
      ];
      bounds.push(`(created_ms, name, id) > (${place.join(', ')})`);
    }
    for (const [key, value] of Object.entries(attributes)) {
      const attribute = put(attributeText(key, value), 'text');
      bounds.push(`number IN (SELECT workflow FROM ${this.#attributes} WHERE attribute = ${attribute})`);
    }
    const where = bounds.length === 0 ? '' : `WHERE ${bounds.join(' AND ')}`;
    const text = `SELECT ${RECORD_COLUMNS} FROM ${this.workflows} ${where}
      ORDER BY created_ms, name, id LIMIT ${put(limit, 'bigint')}`;
    return { text, values };
  }

  purgeSignals(nowMs: number): Statement {
    return { text: `DELETE FROM ${this.#signals} WHERE until_ms <= $1`, values: [nowMs] };
  }

  /** Those that another process forgets just now are left to it. */
  purge(endedBeforeMs: number, limit: number): Statement {
    const of = (table: string): string => `DELETE FROM ${table} t USING gone WHERE t.workflow = gone.number`;
    const text = `WITH gone AS (DELETE FROM ${this.workflows} WHERE number IN (
          SELECT number FROM ${this.workflows} WHERE ended_ms < $1 ORDER BY ended_ms LIMIT $2 FOR UPDATE SKIP LOCKED)
        RETURNING number),
      attributes AS (${of(this.#attributes)}), entries AS (${of(this.#entries)}), events AS (${of(this.#events)})
      SELECT count(*) AS purged FROM gone`;
    return { text, values: [endedBeforeMs, limit] };
  }

  #written(key: WorkflowKey, write: WorkflowWrite, isOver: boolean, put: Values['put']): string {
    const { epoch, expectedVersion, consumed, release, change, nowMs } = write;
    const named = put(workflowKey(key), 'text');
    const isRight = `w.epoch = ${put(epoch, 'bigint')} AND w.write_version = ${put(expectedVersion, 'bigint')} AND w.ended_ms IS NULL`;
    const set = `${changed(change, nowMs, put)}, write_version = w.write_version + 1, last_epoch = w.epoch`;
    const returned = 'RETURNING w.number, w.write_version, w.was_released';
    if (isOver)
      return `written AS (UPDATE ${this.workflows} w
        SET ${set}, was_released = true, owner = NULL, until_ms = 0, wake_ms = NULL
        WHERE w.key = ${named} AND ${isRight} ${returned})`;
    if (release === undefined)
      return `written AS (UPDATE ${this.workflows} w SET ${set}, was_released = false
        WHERE w.key = ${named} AND ${isRight} ${returned})`;
    // An event that came while this waited for the row is not among the events that it sees: the row's own number tells of it.
    const hasNews = '(inbox.has_news OR w.last_event > inbox.newest)';
    const unless = (value: string, kept: string): string => `CASE WHEN ${hasNews} THEN ${kept} ELSE ${value} END`;
    return `inbox AS (SELECT w.number AS workflow, ${this.#newestEvent('w')} AS newest, EXISTS (
          SELECT 1 FROM ${this.#events} e WHERE e.workflow = w.number AND e.event IS NOT NULL
            AND e.seq > ${put(release.seen, 'bigint')} AND e.seq <> ALL (${put([...consumed], 'bigint[]')})) AS has_news
        FROM ${this.workflows} w WHERE w.key = ${named}),
      written AS (UPDATE ${this.workflows} w SET ${set}, was_released = NOT ${hasNews}, owner = ${unless('NULL', 'w.owner')},
          until_ms = ${unless('0', 'w.until_ms')},
          wake_ms = ${unless(put(release.wakeMs ?? null, 'double precision'), 'w.wake_ms')}
        FROM inbox WHERE w.number = inbox.workflow AND ${isRight} ${returned})`;
  }

  /** No statement may change a row and delete it: what is consumed now and forgotten at once is only deleted. */
  #forgetting(key: WorkflowKey, consumed: readonly number[], put: Values['put']): string {
    const isDone = `(e.event IS NULL OR e.seq = ANY (${put([...consumed], 'bigint[]')}))`;
    const edge = 'coalesce((SELECT seq FROM edge), 0)';
    return `edge AS (SELECT e.seq FROM ${this.#events} e JOIN ${this.workflows} w ON w.number = e.workflow
          WHERE w.key = ${put(workflowKey(key), 'text')} AND ${isDone} ORDER BY e.seq DESC OFFSET ${CONSUMED_IDS_KEPT} LIMIT 1),
      forgotten AS (DELETE FROM ${this.#events} e USING written w WHERE e.workflow = w.number AND ${isDone} AND e.seq <= ${edge}),
      consumed AS (UPDATE ${this.#events} e SET event = NULL FROM written w
        WHERE e.workflow = w.number AND e.event IS NOT NULL AND ${isDone} AND e.seq > ${edge})`;
  }

  #newestEvent(workflow: string): string {
    return `coalesce((SELECT max(e.seq) FROM ${this.#events} e WHERE e.workflow = ${workflow}.number), 0)`;
  }
}

function outgoingKey({ name, id }: WorkflowKey): string {
  return JSON.stringify([name, id]);
}

/** What `changedState` makes of a record, as assignments. */
function changed(change: WorkflowChange, nowMs: number, put: Values['put']): string {
  if (change.status === 'continued') {
    const { input, seed, version } = change;
    return `status = 'running', waits = '[]', run = w.run + 1, run_started_ms = ${put(nowMs, 'double precision')},
      input = ${put(json(input), 'text')}, seed = ${put(json(seed), 'text')}, version = ${put(version, 'bigint')}`;
  }
  const status = `status = ${put(change.status, 'text')}, error = ${put(json(change.error), 'text')}`;
  if ('waits' in change) return `${status}, waits = ${put(JSON.stringify(change.waits), 'text')}`;
  return `${status}, waits = '[]', result = ${put(json(change.result), 'text')}, ended_ms = ${put(nowMs, 'double precision')}`;
}
