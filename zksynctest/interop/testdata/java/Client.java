import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;

/** A Curator client, and as many plain ones as are asked for. */
final class Client {
    private final String servers;
    private final int timeout;
    private final List<ZooKeeper> plain = new ArrayList<>();
    final CuratorFramework curator;

    Client(String servers, int timeout) throws Exception {
        this(servers, timeout, 15_000);
    }

    /** A call of Curator fails when there was no connection for connectionTimeout. */
    Client(String servers, int timeout, int connectionTimeout) throws Exception {
        this.servers = servers;
        this.timeout = timeout;
        curator = CuratorFrameworkFactory.builder()
                .connectString(servers)
                .sessionTimeoutMs(timeout)
                .connectionTimeoutMs(connectionTimeout)
                .retryPolicy(new ExponentialBackoffRetry(50, 10))
                .build();
        curator.start();
        if (!curator.blockUntilConnected(30, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + servers);
        }
    }

    /** A session of its own, for recipes that tell their znodes by the session. */
    ZooKeeper plain() throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper zk = new ZooKeeper(servers, timeout, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        synchronized (plain) {
            plain.add(zk);
        }
        if (!connected.await(30, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + servers);
        }
        return zk;
    }

    void close() throws Exception {
        synchronized (plain) {
            for (ZooKeeper zk : plain) {
                zk.close();
            }
        }
        curator.close();
    }
}
