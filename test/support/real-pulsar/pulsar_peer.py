"""The official Python client (on the C++ one), driven over JSON lines on standard input and output: {"id", "command",
...} in, {"id", "ok"} or {"id", "error"} out. Requests run at the same time. Its TypeScript side is pulsar-peer.ts."""

import base64
import datetime
import itertools
import json
import logging
import os
import sys
import threading

import pulsar

QUIET = logging.getLogger("pulsar")
QUIET.addHandler(logging.StreamHandler(sys.stderr))
QUIET.setLevel(logging.ERROR)

COMPRESSION = {
    "none": pulsar.CompressionType.NONE,
    "lz4": pulsar.CompressionType.LZ4,
    "zlib": pulsar.CompressionType.ZLib,
    "zstd": pulsar.CompressionType.ZSTD,
    "snappy": pulsar.CompressionType.SNAPPY,
}
TYPES = {
    "exclusive": pulsar.ConsumerType.Exclusive,
    "failover": pulsar.ConsumerType.Failover,
    "shared": pulsar.ConsumerType.Shared,
    "key-shared": pulsar.ConsumerType.KeyShared,
}
POSITIONS = {"earliest": pulsar.InitialPosition.Earliest, "latest": pulsar.InitialPosition.Latest}

clients = {}
consumers = {}
consumer_numbers = itertools.count(1)
one_at_a_time = threading.Lock()


class Opened:
    """A consumer and what it received, by number, for acknowledgements to name."""

    def __init__(self, consumer):
        self.consumer = consumer
        self.received = {}
        self.numbers = itertools.count(1)

    def remember(self, message):
        number = next(self.numbers)
        self.received[number] = message
        return number


def client(request):
    url = request["serviceUrl"]
    with one_at_a_time:
        if url not in clients:
            clients[url] = pulsar.Client(url, logger=QUIET)
        return clients[url]


def produce(request):
    batching = request.get("batching", "off")
    options = {"chunking_enabled": "chunkBytes" in request}
    if "producerName" in request:
        options["producer_name"] = request["producerName"]
    if request.get("routing") == "java":
        options["message_router"] = java_partition
    producer = client(request).create_producer(
        request["topic"],
        compression_type=COMPRESSION[request.get("compression", "none")],
        batching_enabled=batching != "off",
        batching_max_messages=request.get("batchSize", 1000),
        batching_max_publish_delay_ms=10_000,  # The flush sends them, not the delay.
        batching_type=pulsar.BatchingType.KeyBased if batching == "by-key" else pulsar.BatchingType.Default,
        block_if_queue_full=True,
        **options,
    )
    receipts = [Receipt() for _ in request["messages"]]
    for message, receipt in zip(request["messages"], receipts):
        producer.send_async(callback=receipt.arrived, **send_arguments(message))
    producer.flush()
    sent = [{"id": str(receipt.id()), "partition": receipt.id().partition()} for receipt in receipts]
    producer.close()
    return sent


def java_partition(message, partitions):
    """By the hash of Java's strings: this client has another one, and no option for it."""
    units = message.partition_key().encode("utf-16-be")
    hashed = 0
    for first in range(0, len(units), 2):
        hashed = (31 * hashed + int.from_bytes(units[first : first + 2], "big")) & 0xFFFFFFFF
    return (hashed & 0x7FFFFFFF) % partitions


class Receipt:
    def __init__(self):
        self.here = threading.Event()

    def arrived(self, result, message_id):
        self.result, self.message_id = result, message_id
        self.here.set()

    def id(self):
        if not self.here.wait(60):
            raise TimeoutError("no receipt")
        if self.result != pulsar.Result.Ok:
            raise RuntimeError(str(self.result))
        return self.message_id


def send_arguments(message):
    value = message["value"]
    content = None if value is None else base64.b64decode(value)
    arguments = {"content": content, "properties": message.get("properties")}
    if "key" in message:
        arguments["partition_key"] = message["key"]
    if "orderingKey" in message:
        arguments["ordering_key"] = base64.b64decode(message["orderingKey"]).decode("latin-1")
    if "eventTimeMs" in message:
        arguments["event_timestamp"] = message["eventTimeMs"]
    if "sequenceId" in message:
        arguments["sequence_id"] = message["sequenceId"]
    if "deliverAfterMs" in message:
        arguments["deliver_after"] = datetime.timedelta(milliseconds=message["deliverAfterMs"])
    return arguments


def subscribe(request):
    topics = request["topics"]
    options = {}
    if "consumerName" in request:
        options["consumer_name"] = request["consumerName"]
    if "deadLetter" in request:
        policy = request["deadLetter"]
        options["dead_letter_policy"] = pulsar.ConsumerDeadLetterPolicy(
            max_redeliver_count=policy["maxRedeliverCount"],
            dead_letter_topic=policy.get("topic"),
            initial_subscription_name="kept",  # Without a subscription the topic would age out.
        )
    consumer = client(request).subscribe(
        topics[0] if len(topics) == 1 else topics,
        request["subscription"],
        consumer_type=TYPES[request.get("type", "exclusive")],
        initial_position=POSITIONS[request.get("initialPosition", "earliest")],
        receiver_queue_size=request.get("receiverQueueSize", 1000),
        batch_index_ack_enabled=request.get("batchIndexAck", True),
        negative_ack_redelivery_delay_ms=request.get("negativeAckDelayMs", 60_000),
        **options,
    )
    number = next(consumer_numbers)
    consumers[number] = Opened(consumer)
    return number


def receive(request):
    opened = consumers[request["consumer"]]
    messages = []
    while len(messages) < request["count"]:
        try:
            message = opened.consumer.receive(timeout_millis=request["quietMs"])
        except pulsar.Timeout:
            break
        messages.append(described(message, opened.remember(message)))
    return messages


def read_all(request):
    reader = client(request).create_reader(request["topic"], pulsar.MessageId.earliest)
    messages = []
    while reader.has_message_available():
        messages.append(described(reader.read_next(timeout_millis=15_000), 0))
    reader.close()
    return messages


def settle(request):
    opened = consumers[request["consumer"]]
    act = {
        "acknowledge": opened.consumer.acknowledge,
        "acknowledge-cumulative": opened.consumer.acknowledge_cumulative,
        "negative-acknowledge": opened.consumer.negative_acknowledge,
    }[request["command"]]
    for number in request["numbers"]:
        act(opened.received[number])
    return "done"


def close_consumer(request):
    consumers.pop(request["consumer"]).consumer.close()
    return "done"


def described(message, number):
    message_id = message.message_id()
    ordering_key = message.ordering_key()
    return {
        "number": number,
        "id": f"{message_id.ledger_id()}:{message_id.entry_id()}:{message_id.partition()}",
        "topic": message.topic_name(),
        "partition": message_id.partition(),
        "batchIndex": message_id.batch_index(),
        "value": None if message.has_null_value() else base64.b64encode(message.data()).decode(),
        "key": message.partition_key() or None,
        "keyBytes": None,
        "orderingKey": base64.b64encode(ordering_key.encode("latin-1")).decode() if ordering_key else None,
        "properties": message.properties(),
        "eventTimeMs": message.event_timestamp(),
        "publishTimeMs": message.publish_timestamp(),
        "redeliveryCount": message.redelivery_count(),
        "producerName": message.producer_name(),
        "sequenceId": None,
    }


COMMANDS = {
    "ping": lambda request: "pong",
    "produce": produce,
    "subscribe": subscribe,
    "receive": receive,
    "read-all": read_all,
    "acknowledge": settle,
    "acknowledge-cumulative": settle,
    "negative-acknowledge": settle,
    "close-consumer": close_consumer,
}


def answer(request, answers):
    line = {"id": request["id"]}
    try:
        if request["command"] not in COMMANDS:
            raise NotImplementedError(f"this client cannot do {request['command']}")
        line["ok"] = COMMANDS[request["command"]](request)
    except Exception as error:  # Whatever it is, the tests' side shall see it.
        line["error"] = {"kind": type(error).__name__, "message": str(error)}
    with one_at_a_time:
        answers.write(json.dumps(line) + "\n")
        answers.flush()


def main():
    # Standard output is the protocol's alone: what the C++ part prints goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        threading.Thread(target=answer, args=(json.loads(line), answers), daemon=True).start()
    os._exit(0)  # Subscriptions stay; brokers notice the connection's end.


main()
