import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Instant;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Lets a test in Go use the recipes of Curator and of ZooKeeper itself. It reads commands from
 * standard input, a line each, and answers each with a line on standard output, which begins with
 * the number of the command and the time in nanoseconds:
 *
 * <pre>
 * 1 connect CLIENT SERVERS TIMEOUT_MS     1 1700000000000000000 ok
 * 2 new HANDLE KIND CLIENT PATH ARGS...   2 1700000000000000000 ok
 * 3 call HANDLE METHOD ARGS...            3 1700000000000000000 ok RESULT
 * 4 close CLIENT                          4 1700000000000000000 error MESSAGE
 * </pre>
 *
 * Each handle has a thread, which runs its calls one after another, because Curator's locks belong
 * to threads. What a handle tells on its own comes with the number 0. The program ends with its
 * input.
 */
public final class Peer {
    private static final PrintStream OUT = System.out;
    private static final Map<String, Client> CLIENTS = new ConcurrentHashMap<>();
    private static final Map<String, Recipe> RECIPES = new ConcurrentHashMap<>();
    private static final Map<String, ExecutorService> THREADS = new ConcurrentHashMap<>();

    private interface Task {
        String run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            serve(words[0], words[1], words[2], Arrays.copyOfRange(words, 3, words.length));
        }
        Runtime.getRuntime().halt(0);
    }

    private static void serve(String id, String verb, String name, String[] args) {
        switch (verb) {
            case "connect":
                run(id, "client " + name, () -> {
                    CLIENTS.put(name, new Client(args[0], Integer.parseInt(args[1])));
                    return "";
                });
                break;
            case "close":
                run(id, "client " + name, () -> {
                    CLIENTS.remove(name).close();
                    return "";
                });
                break;
            case "new":
                run(id, name, () -> {
                    String[] rest = Arrays.copyOfRange(args, 3, args.length);
                    RECIPES.put(name, Recipes.make(args[0], CLIENTS.get(args[1]), args[2], rest));
                    return "";
                });
                break;
            case "call":
                run(id, name, () -> {
                    String result = RECIPES.get(name).call(args[0], Arrays.copyOfRange(args, 1, args.length));
                    return result == null ? "" : result;
                });
                break;
            default:
                tell(id, "error", "no command is called " + verb);
        }
    }

    private static void run(String id, String thread, Task task) {
        THREADS.computeIfAbsent(thread, name -> Executors.newSingleThreadExecutor(body -> {
            Thread t = new Thread(body, name);
            t.setDaemon(true);
            return t;
        })).execute(() -> {
            try {
                tell(id, "ok", task.run());
            } catch (Throwable failure) {
                tell(id, "error", failure.toString());
            }
        });
    }

    static void tell(String id, String kind, String text) {
        Instant now = Instant.now();
        long nanos = now.getEpochSecond() * 1_000_000_000L + now.getNano();
        synchronized (OUT) {
            OUT.println((id + " " + nanos + " " + kind + " " + text.replace('\n', ' ')).trim());
            OUT.flush();
        }
    }
}
