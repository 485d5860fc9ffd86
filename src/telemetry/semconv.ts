// Names of OpenTelemetry's messaging conventions, copied: the package that has them says not to import what is not stable,
// and they are not. Names under `pulsework.` are our own, for what the conventions have no word for.

/** v1.44 and everything in the field: Java's agent, its client, kafkajs. */
export const MESSAGING_SYSTEM = 'messaging.system';
/** v1.45 renamed it. */
export const MESSAGING_SYSTEM_NAME = 'messaging.system.name';
export const PULSAR = 'pulsar';
export const OPERATION_NAME = 'messaging.operation.name';
export const OPERATION_TYPE = 'messaging.operation.type';
export const DESTINATION_NAME = 'messaging.destination.name';
export const DESTINATION_TEMPLATE = 'messaging.destination.template';
export const DESTINATION_PARTITION_ID = 'messaging.destination.partition.id';
export const SUBSCRIPTION_NAME = 'messaging.destination.subscription.name';
export const MESSAGE_ID = 'messaging.message.id';
export const CONVERSATION_ID = 'messaging.message.conversation_id';
export const BODY_SIZE = 'messaging.message.body.size';
export const BATCH_MESSAGE_COUNT = 'messaging.batch.message_count';
export const ERROR_TYPE = 'error.type';
export const SERVER_ADDRESS = 'server.address';
export const SERVER_PORT = 'server.port';
/** Of Pulsar's Java client (PIP-446), for queries that see both. */
export const ACKNOWLEDGMENT_TYPE = 'messaging.pulsar.acknowledgment.type';

export const HANDLER = 'pulsework.handler';
export const ATTEMPT = 'pulsework.attempt';
export const REDELIVERY_COUNT = 'pulsework.redelivery_count';
export const OUTCOME = 'pulsework.outcome';
export const SETTLEMENT = 'pulsework.settlement';
export const SETTLEMENT_CALL = 'pulsework.settlement.call';
export const STRATEGY = 'pulsework.redelivery.strategy';
export const DELAY_MS = 'pulsework.delay_ms';
export const DEAD_LETTER_CAUSE = 'pulsework.dead_letter.cause';
export const PUBLISH_KIND = 'pulsework.publish.kind';
export const DROPPED = 'pulsework.dropped';
export const UNFINISHED = 'pulsework.unfinished';
export const PAUSE_REASON = 'pulsework.pause.reason';
export const OUTBOX_STORE = 'pulsework.outbox.store';

/** Where a bound on distinct values is reached, all further ones share this one. */
export const OTHER = '_other';
/** The same for error types, as the conventions spell it. */
export const OTHER_ERROR = '_OTHER';

/** Seconds; the conventions advise these for every messaging duration. */
export const DURATION_BOUNDARIES: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
