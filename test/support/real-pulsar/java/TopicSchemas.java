// What Java's client makes of topics with a schema: producers that register one, and a reader that decodes by one.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HexFormat;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;

final class TopicSchemas {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** What tests exchange as JSON. */
    public static class Order {
        public String id;
        public int amount;
    }

    private TopicSchemas() {}

    /** Takes bytes, registers the schema and refuses bytes that do not fit it. */
    static Schema<byte[]> ofProducer(JsonNode request) {
        return request.has("schema") ? Schema.AUTO_PRODUCE_BYTES(named(request.get("schema").asText())) : Schema.BYTES;
    }

    /** All that a topic holds, decoded, each with the version of the schema that it was written by. */
    static ArrayNode read(PulsarClient client, JsonNode request) throws Exception {
        ArrayNode values = JSON.createArrayNode();
        Schema<?> schema = named(request.get("schema").asText());
        try (Reader<?> reader = client.newReader(schema)
                .topic(request.get("topic").asText()).startMessageId(MessageId.earliest).create()) {
            while (reader.hasMessageAvailable()) {
                Message<?> message = reader.readNext();
                byte[] version = message.getSchemaVersion();
                ObjectNode value = values.addObject();
                value.set("value", JSON.valueToTree(message.getValue()));
                value.put("schemaVersion", version == null ? null : HexFormat.of().formatHex(version));
            }
        }
        return values;
    }

    private static Schema<?> named(String name) {
        return switch (name) {
            case "json" -> Schema.JSON(Order.class);
            case "string" -> Schema.STRING;
            default -> throw new IllegalArgumentException("no such schema: " + name);
        };
    }
}
