// Produces with the Java client and tells how long it took: the yardstick of the benchmarks. Arguments: service URL,
// topic, bytes of a payload, "batched" or "single". Each line of standard input is a number of messages; each line of
// standard output the nanoseconds from the first send to the last receipt.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;

public final class ProduceBenchmark {
    /** As many as the other side has by default. */
    private static final int MAX_PENDING = 50_000;

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // Standard output is for figures alone.
        byte[] payload = new byte[Integer.parseInt(args[2])];
        try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build();
                Producer<byte[]> producer = client.newProducer()
                    .topic(args[1])
                    .enableBatching(args[3].equals("batched"))
                    .blockIfQueueFull(true)
                    .maxPendingMessages(MAX_PENDING)
                    .create()) {
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                answers.println(nanosecondsFor(producer, payload, Integer.parseInt(line)));
                answers.flush();
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static long nanosecondsFor(Producer<byte[]> producer, byte[] payload, int count) throws Exception {
        List<CompletableFuture<MessageId>> receipts = new ArrayList<>(count);
        long start = System.nanoTime();
        for (int i = 0; i < count; i++) receipts.add(producer.sendAsync(payload));
        producer.flush();
        for (CompletableFuture<MessageId> receipt : receipts) receipt.get();
        return System.nanoTime() - start;
    }
}
