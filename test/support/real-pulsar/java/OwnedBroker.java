// A standalone broker that ends with its owner. Standard input is a pipe that the owner holds: however the owner ends,
// the pipe ends too, and no broker is left behind. With the property "outlives" it stays until its settings are removed.

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.pulsar.PulsarStandaloneStarter;

public final class OwnedBroker {
    public static void main(String[] args) throws Exception {
        // Not the folder itself: parts of the broker make it again.
        Path settings = Path.of(System.getProperty("pulsework.folder"), "standalone.conf");
        boolean outlivesOwner = Boolean.getBoolean("pulsework.outlives");
        Thread watch = new Thread(() -> endWith(settings, outlivesOwner), "owner-watch");
        watch.setDaemon(true);
        watch.start();
        PulsarStandaloneStarter.main(args);
    }

    private static void endWith(Path settings, boolean outlivesOwner) {
        try {
            if (outlivesOwner) {
                while (Files.exists(settings)) Thread.sleep(2_000);
            } else {
                while (System.in.read() != -1) continue;
            }
        } catch (Exception error) {
            error.printStackTrace();
        }
        Runtime.getRuntime().halt(1);
    }
}
