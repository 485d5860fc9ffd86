// The official Java client, driven over JSON lines on standard input and output: {"id", "command", ...} in, {"id", "ok"}
// or {"id", "error"} out. Requests run at the same time. Its TypeScript side is pulsar-peer.ts.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.pulsar.client.api.BatcherBuilder;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerAccessMode;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TypedMessageBuilder;
import org.apache.pulsar.client.api.transaction.Transaction;
import org.apache.pulsar.client.impl.BatchMessageIdImpl;
import org.apache.pulsar.client.impl.JavaStringHash;
import org.apache.pulsar.client.impl.MessageIdImpl;
import org.apache.pulsar.client.impl.TopicMessageIdImpl;
import org.apache.pulsar.client.util.MathUtils;

public final class PulsarPeer {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int DEFAULT_BATCH_SIZE = 1000;

    private final Map<String, PulsarClient> clients = new ConcurrentHashMap<>();
    private final Map<Integer, Opened> consumers = new ConcurrentHashMap<>();
    private final Map<Integer, Producer<byte[]>> producers = new ConcurrentHashMap<>();
    private final AtomicInteger consumerNumbers = new AtomicInteger();
    private final PrintStream answers;

    /** A consumer and what it received, by number, for acknowledgements to name. */
    private record Opened(Consumer<byte[]> consumer, Map<Integer, Message<byte[]>> received, AtomicInteger numbers) {
        int remember(Message<byte[]> message) {
            int number = numbers.incrementAndGet();
            received.put(number, message);
            return number;
        }
    }

    private PulsarPeer(PrintStream answers) {
        this.answers = answers;
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // Standard output is the protocol's alone.
        PulsarPeer peer = new PulsarPeer(answers);
        ExecutorService requests = Executors.newCachedThreadPool();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode request = JSON.readTree(line);
            requests.execute(() -> peer.answer(request));
        }
        requests.shutdownNow();
        Runtime.getRuntime().halt(0); // Subscriptions stay; brokers notice the connection's end.
    }

    private void answer(JsonNode request) {
        ObjectNode answer = JSON.createObjectNode().put("id", request.get("id").asInt());
        try {
            answer.set("ok", JSON.valueToTree(perform(request)));
        } catch (Throwable thrown) {
            Throwable error = thrown;
            boolean wrapper = error instanceof ExecutionException || error instanceof CompletionException;
            if (wrapper && error.getCause() != null) error = error.getCause();
            answer.putObject("error").put("kind", error.getClass().getSimpleName()).put("message", "" + error.getMessage());
        }
        byte[] line = (answer + "\n").getBytes(StandardCharsets.UTF_8);
        synchronized (answers) {
            answers.write(line, 0, line.length);
            answers.flush();
        }
    }

    private Object perform(JsonNode request) throws Exception {
        return switch (request.get("command").asText()) {
            case "ping" -> "pong";
            case "produce" -> produce(request);
            case "open-producer" -> openProducer(request);
            case "close-producer" -> closeProducer(request);
            case "subscribe" -> subscribe(request);
            case "receive" -> receive(request);
            case "produce-in-transaction" -> produceInTransaction(request);
            case "read-all" -> readAll(request);
            case "read-values" -> TopicSchemas.read(client(request), request);
            case "partition-of" -> MathUtils.signSafeMod(
                JavaStringHash.getInstance().makeHash(request.get("key").asText()), request.get("partitions").asInt());
            case "close-consumer" -> closeConsumer(request);
            default -> settle(request);
        };
    }

    private PulsarClient client(JsonNode request) {
        return clients.computeIfAbsent(request.get("serviceUrl").asText(), url -> {
            try {
                return PulsarClient.builder().serviceUrl(url).build();
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        });
    }

    /** A producer that stays, for what others may not do meanwhile. */
    private int openProducer(JsonNode request) throws Exception {
        int number = consumerNumbers.incrementAndGet();
        producers.put(number, producer(request));
        return number;
    }

    private String closeProducer(JsonNode request) throws Exception {
        producers.remove(request.get("producer").asInt()).close();
        return "done";
    }

    private ArrayNode produce(JsonNode request) throws Exception {
        ArrayNode sent = JSON.createArrayNode();
        try (Producer<byte[]> producer = producer(request)) {
            List<CompletableFuture<MessageId>> receipts = new ArrayList<>();
            for (JsonNode message : request.get("messages")) receipts.add(message(producer, message).sendAsync());
            producer.flush();
            for (CompletableFuture<MessageId> receipt : receipts) {
                MessageId id = receipt.get(60, TimeUnit.SECONDS);
                sent.addObject().put("id", textOf(id)).put("partition", partitionOf(id));
            }
        }
        return sent;
    }

    /** All messages in one transaction, which ends as the request says. */
    private String produceInTransaction(JsonNode request) throws Exception {
        String url = request.get("serviceUrl").asText();
        try (PulsarClient client = PulsarClient.builder().serviceUrl(url).enableTransaction(true).build();
                Producer<byte[]> producer = client.newProducer().topic(request.get("topic").asText())
                    .sendTimeout(0, TimeUnit.SECONDS).create()) {
            Transaction transaction = client.newTransaction().build().get(60, TimeUnit.SECONDS);
            for (JsonNode message : request.get("messages")) {
                producer.newMessage(transaction).value(bytes(message.get("value"))).send();
            }
            boolean commit = request.get("commit").asBoolean();
            (commit ? transaction.commit() : transaction.abort()).get(60, TimeUnit.SECONDS);
        }
        return "done";
    }

    private Producer<byte[]> producer(JsonNode request) throws Exception {
        String batching = request.path("batching").asText("off");
        ProducerBuilder<byte[]> builder = client(request).newProducer(TopicSchemas.ofProducer(request))
            .topic(request.get("topic").asText())
            .blockIfQueueFull(true)
            .compressionType(CompressionType.valueOf(request.path("compression").asText("none").toUpperCase(Locale.ROOT)))
            .enableBatching(!batching.equals("off"))
            .batchingMaxMessages(request.path("batchSize").asInt(DEFAULT_BATCH_SIZE))
            .batchingMaxPublishDelay(10, TimeUnit.SECONDS); // The flush sends them, not the delay.
        if (batching.equals("by-key")) builder.batcherBuilder(BatcherBuilder.KEY_BASED);
        if (request.has("accessMode")) builder.accessMode(ProducerAccessMode.valueOf(request.get("accessMode").asText()));
        if (request.has("producerName")) builder.producerName(request.get("producerName").asText());
        if (request.has("chunkBytes")) {
            builder.enableChunking(true).chunkMaxMessageSize(request.get("chunkBytes").asInt());
        }
        return builder.create();
    }

    private static TypedMessageBuilder<byte[]> message(Producer<byte[]> producer, JsonNode message) {
        TypedMessageBuilder<byte[]> builder = producer.newMessage().value(bytes(message.get("value")));
        if (message.has("key")) builder.key(message.get("key").asText());
        if (message.has("keyBytes")) builder.keyBytes(bytes(message.get("keyBytes")));
        if (message.has("orderingKey")) builder.orderingKey(bytes(message.get("orderingKey")));
        if (message.has("eventTimeMs")) builder.eventTime(message.get("eventTimeMs").asLong());
        if (message.has("sequenceId")) builder.sequenceId(message.get("sequenceId").asLong());
        if (message.has("deliverAfterMs")) {
            builder.deliverAfter(message.get("deliverAfterMs").asLong(), TimeUnit.MILLISECONDS);
        }
        builder.properties(properties(message));
        return builder;
    }

    private int subscribe(JsonNode request) throws Exception {
        List<String> topics = new ArrayList<>();
        request.get("topics").forEach(topic -> topics.add(topic.asText()));
        boolean latest = request.path("initialPosition").asText("earliest").equals("latest");
        ConsumerBuilder<byte[]> builder = client(request).newConsumer()
            .topics(topics)
            .subscriptionName(request.get("subscription").asText())
            .subscriptionType(subscriptionType(request.path("type").asText("exclusive")))
            .subscriptionInitialPosition(latest ? SubscriptionInitialPosition.Latest : SubscriptionInitialPosition.Earliest)
            .receiverQueueSize(request.path("receiverQueueSize").asInt(1000))
            .enableBatchIndexAcknowledgment(request.path("batchIndexAck").asBoolean(true))
            .isAckReceiptEnabled(request.path("ackReceipt").asBoolean(true))
            .acknowledgmentGroupTime(0, TimeUnit.MILLISECONDS)
            .negativeAckRedeliveryDelay(request.path("negativeAckDelayMs").asLong(60_000), TimeUnit.MILLISECONDS)
            .enableRetry(request.path("enableRetry").asBoolean(false));
        if (request.has("consumerName")) builder.consumerName(request.get("consumerName").asText());
        if (request.has("deadLetter")) builder.deadLetterPolicy(deadLetterPolicy(request.get("deadLetter")));
        int number = consumerNumbers.incrementAndGet();
        consumers.put(number, new Opened(builder.subscribe(), new ConcurrentHashMap<>(), new AtomicInteger()));
        return number;
    }

    private static SubscriptionType subscriptionType(String name) {
        return switch (name) {
            case "exclusive" -> SubscriptionType.Exclusive;
            case "failover" -> SubscriptionType.Failover;
            case "shared" -> SubscriptionType.Shared;
            case "key-shared" -> SubscriptionType.Key_Shared;
            default -> throw new IllegalArgumentException("no such subscription type: " + name);
        };
    }

    private static DeadLetterPolicy deadLetterPolicy(JsonNode policy) {
        DeadLetterPolicy.DeadLetterPolicyBuilder builder =
            DeadLetterPolicy.builder().maxRedeliverCount(policy.get("maxRedeliverCount").asInt());
        if (policy.has("topic")) builder.deadLetterTopic(policy.get("topic").asText());
        // Without a subscription the topic would age out.
        return builder.initialSubscriptionName("kept").build();
    }

    private ArrayNode receive(JsonNode request) throws Exception {
        Opened opened = opened(request);
        ArrayNode messages = JSON.createArrayNode();
        while (messages.size() < request.get("count").asInt()) {
            Message<byte[]> message = opened.consumer().receive(request.get("quietMs").asInt(), TimeUnit.MILLISECONDS);
            if (message == null) break;
            messages.add(described(message, opened.remember(message)));
        }
        return messages;
    }

    private ArrayNode readAll(JsonNode request) throws Exception {
        ArrayNode messages = JSON.createArrayNode();
        try (Reader<byte[]> reader = client(request).newReader()
                .topic(request.get("topic").asText()).startMessageId(MessageId.earliest).create()) {
            while (reader.hasMessageAvailable()) messages.add(described(reader.readNext(), 0));
        }
        return messages;
    }

    private String settle(JsonNode request) throws Exception {
        Opened opened = opened(request);
        List<CompletableFuture<Void>> confirmed = new ArrayList<>();
        for (JsonNode number : request.get("numbers")) {
            Message<byte[]> message = opened.received().get(number.asInt());
            switch (request.get("command").asText()) {
                case "acknowledge" -> confirmed.add(opened.consumer().acknowledgeAsync(message));
                case "acknowledge-cumulative" -> confirmed.add(opened.consumer().acknowledgeCumulativeAsync(message));
                case "negative-acknowledge" -> opened.consumer().negativeAcknowledge(message);
                case "reconsume-later" -> confirmed.add(opened.consumer().reconsumeLaterAsync(
                    message, properties(request), request.get("delayMs").asLong(), TimeUnit.MILLISECONDS));
                default -> throw new IllegalArgumentException("no such command: " + request.get("command").asText());
            }
        }
        for (CompletableFuture<Void> each : confirmed) each.get(60, TimeUnit.SECONDS);
        return "done";
    }

    private String closeConsumer(JsonNode request) throws Exception {
        opened(request).consumer().close();
        consumers.remove(request.get("consumer").asInt());
        return "done";
    }

    private Opened opened(JsonNode request) {
        JsonNode number = request.get("consumer");
        Opened opened = number == null ? null : consumers.get(number.asInt());
        if (opened == null) throw new IllegalArgumentException("no such consumer: " + number);
        return opened;
    }

    private static ObjectNode described(Message<byte[]> message, int number) {
        ObjectNode described = JSON.createObjectNode()
            .put("number", number)
            .put("id", textOf(message.getMessageId()))
            .put("topic", message.getTopicName())
            .put("partition", partitionOf(message.getMessageId()))
            .put("batchIndex", batchIndexOf(message.getMessageId()))
            .put("value", base64(message.getValue()))
            .put("key", message.getKey())
            .put("keyBytes", message.hasBase64EncodedKey() ? base64(message.getKeyBytes()) : null)
            .put("orderingKey", message.hasOrderingKey() ? base64(message.getOrderingKey()) : null)
            .put("eventTimeMs", message.getEventTime())
            .put("publishTimeMs", message.getPublishTime())
            .put("redeliveryCount", message.getRedeliveryCount())
            .put("producerName", message.getProducerName())
            .put("sequenceId", message.getSequenceId());
        described.set("properties", JSON.valueToTree(message.getProperties()));
        return described;
    }

    /** Of several topics, the id that the one topic gave. */
    private static MessageId inner(MessageId id) {
        return id instanceof TopicMessageIdImpl outer ? outer.getInnerMessageId() : id;
    }

    private static String textOf(MessageId id) {
        return inner(id).toString();
    }

    private static int partitionOf(MessageId id) {
        return inner(id) instanceof MessageIdImpl known ? known.getPartitionIndex() : -1;
    }

    private static int batchIndexOf(MessageId id) {
        return inner(id) instanceof BatchMessageIdImpl known ? known.getBatchIndex() : -1;
    }

    private static Map<String, String> properties(JsonNode from) {
        Map<String, String> properties = new HashMap<>();
        from.path("properties").fields().forEachRemaining(entry -> properties.put(entry.getKey(), entry.getValue().asText()));
        return properties;
    }

    private static byte[] bytes(JsonNode base64) {
        return base64 == null || base64.isNull() ? null : Base64.getDecoder().decode(base64.asText());
    }

    private static String base64(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }
}
