import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Curator's side of the rows. It answers a job a line; see process.go. */
public class Curator {
    static final byte[] MESSAGE = "a message of forty bytes, as many are....".getBytes();
    static final List<CuratorFramework> clients = new ArrayList<>();
    static final ExecutorService threads = Executors.newCachedThreadPool(task -> {
        Thread t = new Thread(null, task, "worker", 256 << 10);
        t.setDaemon(true);
        return t;
    });

    static String path, servers;
    static int ops, workers, sessions, backlog;

    public static void main(String[] args) throws Exception {
        Scanner in = new Scanner(System.in);
        while (in.hasNextLine()) {
            String[] word = in.nextLine().split(" ");
            path = word[1];
            ops = Integer.parseInt(word[2]);
            workers = Integer.parseInt(word[3]);
            sessions = Integer.parseInt(word[4]);
            backlog = Integer.parseInt(word[5]);
            servers = word[6];
            try {
                System.out.println(run(word[0]));
            } catch (Exception e) {
                System.out.println("failed " + e.toString().replace('\n', ' '));
            }
        }
        for (CuratorFramework c : clients) {
            c.close();
        }
        System.exit(0);
    }

    static String run(String row) throws Exception {
        switch (row) {
            case "lock": return lock();
            case "handover": case "turns": return handover();
            case "shared": return shared();
            case "put": return put();
            case "deliver": return deliver();
            case "election": return election();
            case "barrier": return barrier();
            default: return "none";
        }
    }

    static CuratorFramework open() throws Exception {
        CuratorFramework c = CuratorFrameworkFactory.newClient(servers, 30_000, 15_000, new ExponentialBackoffRetry(100, 5));
        c.start();
        c.blockUntilConnected();
        return c;
    }

    static CuratorFramework client(int i) throws Exception {
        while (clients.size() <= i) {
            clients.add(open());
        }
        return clients.get(i);
    }

    static String ok(int ops, long began) {
        return "ok " + ops + " " + (System.nanoTime() - began);
    }

    static void again(InterProcessMutex mutex, int n) throws Exception {
        for (int i = 0; i < n; i++) {
            mutex.acquire();
            mutex.release();
        }
    }

    /** Runs a task a worker and waits for all. */
    static void await(List<Future<Void>> running) throws Exception {
        for (Future<Void> f : running) {
            f.get();
        }
    }

    static Future<Void> go(Callable<Void> task) {
        return threads.submit(task);
    }

    static String lock() throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(client(0), path);
        again(mutex, 1);
        long began = System.nanoTime();
        again(mutex, ops);
        return ok(ops, began);
    }

    static String handover() throws Exception {
        client(sessions - 1);
        InterProcessMutex gate = new InterProcessMutex(client(0), path);
        gate.acquire();
        List<Future<Void>> running = new ArrayList<>();
        for (int i = 0; i < workers; i++) {
            InterProcessMutex mutex = new InterProcessMutex(client(i % sessions), path);
            running.add(go(() -> { again(mutex, ops / workers); return null; }));
        }
        awaitChildren(workers + 1);
        long began = System.nanoTime();
        gate.release();
        await(running);
        return ok(ops, began);
    }

    static void awaitChildren(int n) throws Exception {
        while (client(0).checkExists().forPath(path).getNumChildren() < n) {
            Thread.sleep(10);
        }
    }

    static String shared() throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(client(0), path);
        long began = System.nanoTime();
        List<Future<Void>> running = new ArrayList<>();
        for (int i = 0; i < workers; i++) {
            running.add(go(() -> { again(mutex, ops / workers); return null; }));
        }
        await(running);
        return ok(ops, began);
    }

    static String put() throws Exception {
        SimpleDistributedQueue queue = new SimpleDistributedQueue(client(0), path);
        queue.offer(MESSAGE);
        long began = System.nanoTime();
        List<Future<Void>> running = new ArrayList<>();
        for (int i = 0; i < workers; i++) {
            running.add(go(() -> {
                for (int k = 0; k < ops / workers; k++) {
                    queue.offer(MESSAGE);
                }
                return null;
            }));
        }
        await(running);
        return ok(ops, began);
    }

    static String deliver() throws Exception {
        CuratorFramework c = client(0);
        c.createContainers(path);
        org.apache.zookeeper.ZooKeeper zk = c.getZookeeperClient().getZooKeeper();
        for (int done = 0; done < backlog; ) {
            List<org.apache.zookeeper.Op> batch = new ArrayList<>();
            for (; batch.size() < 1000 && done < backlog; done++) {
                batch.add(org.apache.zookeeper.Op.create(path + "/qn-", MESSAGE,
                    org.apache.zookeeper.ZooDefs.Ids.OPEN_ACL_UNSAFE, org.apache.zookeeper.CreateMode.PERSISTENT_SEQUENTIAL));
            }
            zk.multi(batch);
        }
        SimpleDistributedQueue queue = new SimpleDistributedQueue(c, path);
        long began = System.nanoTime();
        for (int i = 0; i < ops; i++) {
            queue.take();
        }
        return ok(ops, began);
    }

    static String election() throws Exception {
        client(1);
        LeaderLatch leader = new LeaderLatch(client(0), path, "a");
        leader.start();
        leader.await();
        long total = 0;
        for (int i = 0; i < ops; i++) {
            LeaderLatch next = new LeaderLatch(client((i + 1) % 2), path, "b");
            next.start();
            awaitChildren(2);
            long began = System.nanoTime();
            leader.close();
            next.await();
            total += System.nanoTime() - began;
            leader = next;
        }
        leader.close();
        return "ok " + ops + " " + total;
    }

    static String barrier() throws Exception {
        List<CuratorFramework> own = new ArrayList<>();
        try {
            for (int i = 0; i < sessions; i++) {
                own.add(open());
            }
            CountDownLatch stuck = new CountDownLatch(workers);
            long began = System.nanoTime();
            for (int i = 0; i < workers; i++) {
                DistributedDoubleBarrier b = new DistributedDoubleBarrier(own.get(i % sessions), path, workers);
                go(() -> {
                    if (b.enter(60, TimeUnit.SECONDS) && b.leave(60, TimeUnit.SECONDS)) {
                        stuck.countDown();
                    }
                    return null;
                });
            }
            if (!stuck.await(60, TimeUnit.SECONDS)) {
                return "failed " + stuck.getCount() + " of " + workers + " were not through after 60 s";
            }
            return ok(ops, began);
        } finally {
            for (CuratorFramework c : own) {
                c.close();
            }
        }
    }
}
