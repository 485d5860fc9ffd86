// Receives and acknowledges with the Java client and tells how long it took: the yardstick of the benchmarks. Arguments:
// service URL, topic, size of the receiver queue, "receipts" or "grouped" (what Java does by default: acknowledging ends
// once the client has noted it, and what was noted leaves every 100 ms). Each line of standard input is a number of
// messages, read from the start of the topic by a subscription of its own; each line of standard output has the
// nanoseconds from the subscription to the last acknowledgement, and those of processor time that this process took.
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;

public final class ConsumeBenchmark {
    private static final OperatingSystemMXBean PROCESS =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // Standard output is for figures alone.
        try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build()) {
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                answers.println(timesFor(client, args, Integer.parseInt(line)));
                answers.flush();
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static String timesFor(PulsarClient client, String[] args, int count) throws Exception {
        Consumer<byte[]> consumer = client.newConsumer()
            .topic(args[1])
            .subscriptionName("java-" + UUID.randomUUID())
            .subscriptionType(SubscriptionType.Shared)
            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
            .receiverQueueSize(Integer.parseInt(args[2]))
            .isAckReceiptEnabled(args[3].equals("receipts"))
            .subscribe();
        List<CompletableFuture<Void>> acknowledged = new ArrayList<>(count);
        long cpuStart = PROCESS.getProcessCpuTime();
        long start = System.nanoTime();
        for (int i = 0; i < count; i++) acknowledged.add(consumer.acknowledgeAsync(consumer.receive()));
        for (CompletableFuture<Void> one : acknowledged) one.get();
        long wall = System.nanoTime() - start;
        long cpu = PROCESS.getProcessCpuTime() - cpuStart;
        consumer.unsubscribe();
        consumer.close();
        return wall + " " + cpu;
    }
}
