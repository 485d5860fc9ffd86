// Produces with the Java client and tells how long it took: the yardstick of the benchmarks. Arguments: service URL,
// topic, bytes of a payload, "batched" or "single", how many messages may wait for receipts. Each line of standard input
// is a number of messages; each line of standard output has the nanoseconds from the first send to the last receipt, and
// the nanoseconds of processor time that this process took meanwhile.
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;

public final class ProduceBenchmark {
    private static final OperatingSystemMXBean PROCESS =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // Standard output is for figures alone.
        byte[] payload = new byte[Integer.parseInt(args[2])];
        try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build();
                Producer<byte[]> producer = client.newProducer()
                    .topic(args[1])
                    .enableBatching(args[3].equals("batched"))
                    .blockIfQueueFull(true)
                    .maxPendingMessages(Integer.parseInt(args[4]))
                    .create()) {
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                answers.println(timesFor(producer, payload, Integer.parseInt(line)));
                answers.flush();
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static String timesFor(Producer<byte[]> producer, byte[] payload, int count) throws Exception {
        List<CompletableFuture<MessageId>> receipts = new ArrayList<>(count);
        long cpuStart = PROCESS.getProcessCpuTime();
        long start = System.nanoTime();
        for (int i = 0; i < count; i++) receipts.add(producer.sendAsync(payload));
        producer.flush();
        for (CompletableFuture<MessageId> receipt : receipts) receipt.get();
        long wall = System.nanoTime() - start;
        return wall + " " + (PROCESS.getProcessCpuTime() - cpuStart);
    }
}
