import java.util.concurrent.TimeUnit;

/** Any lock that excludes, and contention for it. */
abstract class Lock implements Recipe {
    abstract void acquire() throws Exception;

    abstract void release() throws Exception;

    boolean tryFor(long ms) throws Exception {
        throw new UnsupportedOperationException("this lock has no try");
    }

    @Override
    public String call(String method, String[] args) throws Exception {
        switch (method) {
            case "acquire":
                acquire();
                return "";
            case "release":
                release();
                return "";
            case "try":
                return Boolean.toString(tryFor(Long.parseLong(args[0])));
            case "contend":
                return contend(Integer.parseInt(args[0]), args[1], args[2], Integer.parseInt(args[3]));
            default:
                throw new IllegalArgumentException("a lock has no " + method);
        }
    }

    /** Acquires n times, and stops for good while it holds for the stop-th time. */
    private String contend(int n, String dir, String name, int stop) throws Exception {
        Witness witness = new Witness(dir, name);
        for (int i = 1; i <= n; i++) {
            acquire();
            witness.enter();
            if (i == stop) {
                Peer.tell("0", "holding", name);
                TimeUnit.DAYS.sleep(1);
            }
            witness.exit();
            release();
        }
        return Integer.toString(n);
    }
}
