import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.queue.DistributedQueue;

/** What a test can ask for, by its kind. */
final class Recipes {
    private Recipes() {}

    static Recipe make(String kind, Client client, String path, String[] args) throws Exception {
        CuratorFramework curator = client.curator;
        switch (kind) {
            case "curator-mutex":
                return Locks.Curators.mutex(curator, path);
            case "curator-rwlock":
                return new Locks.ReadWrite(curator, path);
            case "curator-semaphore":
                return new Locks.Units(curator, path, Integer.parseInt(args[0]));
            case "curator-latch":
                return new Elections.Latch(curator, path, args[0]);
            case "curator-selector":
                return new Elections.Selector(curator, path, args[0]);
            case "curator-queue":
                return queue(curator, path);
            case "curator-barrier":
                return barrier(new DistributedBarrier(curator, path));
            case "curator-doublebarrier":
                return doubleBarrier(curator, path, Integer.parseInt(args[0]));
            case "recipe-lock":
                return new Locks.Recipes(client.plain(), path);
            case "recipe-election":
                return new Elections.Support(client.plain(), path, args[0]);
            case "recipe-queue":
                return queue(client.plain(), path);
            default:
                throw new IllegalArgumentException("there is no " + kind);
        }
    }

    private static String text(byte[] data) {
        return data == null ? "nothing" : "=" + new String(data, StandardCharsets.UTF_8);
    }

    private interface Taker {
        byte[] take() throws Exception;
    }

    private static String several(int n, Taker taker) throws Exception {
        List<String> all = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            all.add(text(taker.take()));
        }
        return String.join(",", all);
    }

    private interface Putter {
        void offer(byte[] data) throws Exception;
    }

    private static Recipe queue(Putter putter, Taker poll, Taker peek, Taker take) {
        return (method, args) -> {
            switch (method) {
                case "offer":
                    for (String data : args) {
                        putter.offer(data.getBytes(StandardCharsets.UTF_8));
                    }
                    return "";
                case "poll":
                    return text(poll.take());
                case "peek":
                    return text(peek.take());
                case "take":
                    return several(Integer.parseInt(args[0]), take);
                default:
                    throw new IllegalArgumentException("a queue has no " + method);
            }
        };
    }

    private static Recipe queue(CuratorFramework curator, String path) {
        SimpleDistributedQueue queue = new SimpleDistributedQueue(curator, path);
        return queue(queue::offer, queue::poll, queue::peek, queue::take);
    }

    private static Recipe queue(ZooKeeper zk, String path) {
        DistributedQueue queue = new DistributedQueue(zk, path, ZooDefs.Ids.OPEN_ACL_UNSAFE);
        return queue(queue::offer, queue::poll, queue::peek, queue::take);
    }

    private static Recipe barrier(DistributedBarrier barrier) {
        return (method, args) -> {
            switch (method) {
                case "set":
                    barrier.setBarrier();
                    return "";
                case "remove":
                    barrier.removeBarrier();
                    return "";
                case "wait":
                    return Boolean.toString(barrier.waitOnBarrier(Long.parseLong(args[0]), TimeUnit.MILLISECONDS));
                default:
                    throw new IllegalArgumentException("a barrier has no " + method);
            }
        };
    }

    /** A new object for each round: only so can Curator's serve more than one. */
    private static Recipe doubleBarrier(CuratorFramework curator, String path, int n) {
        DistributedDoubleBarrier[] round = new DistributedDoubleBarrier[1];
        return (method, args) -> {
            switch (method) {
                case "enter":
                    round[0] = new DistributedDoubleBarrier(curator, path, n);
                    return Boolean.toString(round[0].enter(Long.parseLong(args[0]), TimeUnit.MILLISECONDS));
                case "leave":
                    return Boolean.toString(round[0].leave(Long.parseLong(args[0]), TimeUnit.MILLISECONDS));
                default:
                    throw new IllegalArgumentException("a double barrier has no " + method);
            }
        };
    }
}
