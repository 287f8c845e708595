import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Knows by the file system, and not by the lock, whether two hold at once. The peers in Go and
 * Python do the same with the same files:
 *
 * <ul>
 *   <li>held exists while somebody holds and has the process id of whoever that is. It is made
 *       only if it does not exist, or if that process is dead.
 *   <li>count is read and written back with one more by each holder.
 *   <li>order gets a line by each holder.
 * </ul>
 */
final class Witness {
    private final Path dir;
    private final String name;

    Witness(String dir, String name) {
        this.dir = Path.of(dir);
        this.name = name;
    }

    void enter() throws IOException {
        Path held = dir.resolve("held");
        byte[] self = (ProcessHandle.current().pid() + " " + name).getBytes(StandardCharsets.US_ASCII);
        try {
            Files.write(held, self, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        } catch (FileAlreadyExistsException overlap) {
            String other;
            try {
                other = Files.readString(held);
            } catch (NoSuchFileException left) {
                other = "";
            }
            String pid = other.split(" ")[0];
            if (pid.isEmpty() || ProcessHandle.of(Long.parseLong(pid)).isPresent()) {
                throw new IllegalStateException("OVERLAP: " + name + " came while \"" + other + "\" held");
            }
            Files.delete(held);
            Files.write(held, self, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        }
        Path count = dir.resolve("count");
        long n = Long.parseLong(Files.readString(count).trim());
        Files.writeString(count, Long.toString(n + 1));
        Files.writeString(dir.resolve("order"), name + "\n", StandardOpenOption.APPEND);
    }

    /** For readers: nobody writes. */
    void nobody() throws IOException {
        if (Files.exists(dir.resolve("held"))) {
            throw new IllegalStateException("OVERLAP: " + name + " reads while somebody writes");
        }
    }

    void exit() throws IOException {
        Files.delete(dir.resolve("held"));
    }
}
