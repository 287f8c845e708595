import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

/** The locks of Curator and of ZooKeeper. */
final class Locks {
    private Locks() {}

    /** Curator's InterProcessMutex, or one half of its InterProcessReadWriteLock. */
    static final class Curators extends Lock {
        private final InterProcessLock lock;

        Curators(InterProcessLock lock) {
            this.lock = lock;
        }

        static Curators mutex(CuratorFramework curator, String path) {
            return new Curators(new InterProcessMutex(curator, path));
        }

        @Override
        void acquire() throws Exception {
            lock.acquire();
        }

        @Override
        boolean tryFor(long ms) throws Exception {
            return lock.acquire(ms, TimeUnit.MILLISECONDS);
        }

        @Override
        void release() throws Exception {
            lock.release();
        }
    }

    /** Both halves of an InterProcessReadWriteLock, for one thread. */
    static final class ReadWrite implements Recipe {
        private final Lock read;
        private final Lock write;

        ReadWrite(CuratorFramework curator, String path) {
            InterProcessReadWriteLock lock = new InterProcessReadWriteLock(curator, path);
            read = new Curators(lock.readLock());
            write = new Curators(lock.writeLock());
        }

        @Override
        public String call(String method, String[] args) throws Exception {
            if (method.equals("r-contend")) {
                Witness witness = new Witness(args[1], args[2]);
                for (int i = 0; i < Integer.parseInt(args[0]); i++) {
                    read.call("acquire", args);
                    witness.nobody();
                    TimeUnit.MILLISECONDS.sleep(1);
                    witness.nobody();
                    read.call("release", args);
                }
                return args[0];
            }
            if (method.startsWith("r-")) {
                return read.call(method.substring(2), args);
            }
            return write.call(method, args);
        }
    }

    /** The lock recipe that comes with ZooKeeper. */
    static final class Recipes extends Lock {
        private final ZooKeeper zk;
        private final String path;
        private final WriteLock lock;
        private final Semaphore acquired = new Semaphore(0);

        Recipes(ZooKeeper zk, String path) {
            this.zk = zk;
            this.path = path;
            lock = new WriteLock(zk, path, ZooDefs.Ids.OPEN_ACL_UNSAFE, new LockListener() {
                @Override
                public void lockAcquired() {
                    acquired.release();
                }

                @Override
                public void lockReleased() {}
            });
        }

        @Override
        void acquire() throws Exception {
            while (!tryFor(60_000)) {}
        }

        /** What the recipe does by itself. */
        @Override
        public String call(String method, String[] args) throws Exception {
            if (!method.equals("once")) {
                return super.call(method, args);
            }
            lock.lock();
            return Boolean.toString(acquired.tryAcquire(Long.parseLong(args[0]), TimeUnit.MILLISECONDS));
        }

        /**
         * Asks again and again: where the one in front leaves while it looks, the recipe forgets to
         * watch anything, and would wait for ever.
         */
        @Override
        boolean tryFor(long ms) throws Exception {
            acquired.drainPermits();
            long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
            do {
                lock.lock();
                if (acquired.tryAcquire(20, TimeUnit.MILLISECONDS)) {
                    return true;
                }
            } while (System.nanoTime() < end);
            lock.unlock();
            acquired.drainPermits();
            return false;
        }

        /**
         * Whoever asks again leaves a watcher each time, and each of them locks when the one in front
         * goes. One that does so after the release joins the line anew; so they have their turn first.
         */
        @Override
        void release() throws Exception {
            CountDownLatch heard = new CountDownLatch(1);
            zk.sync(path, (code, name, context) -> heard.countDown(), null);
            heard.await();
            lock.unlock();
        }
    }

    /** Curator's InterProcessSemaphoreV2. */
    static final class Units implements Recipe {
        private final InterProcessSemaphoreV2 semaphore;
        private final Deque<Collection<Lease>> held = new ArrayDeque<>();

        Units(CuratorFramework curator, String path, int n) {
            semaphore = new InterProcessSemaphoreV2(curator, path, n);
        }

        @Override
        public String call(String method, String[] args) throws Exception {
            switch (method) {
                case "acquire":
                    held.push(semaphore.acquire(Integer.parseInt(args[0])));
                    return "";
                case "try":
                    Collection<Lease> got =
                            semaphore.acquire(Integer.parseInt(args[0]), Long.parseLong(args[1]), TimeUnit.MILLISECONDS);
                    if (got != null) {
                        held.push(got);
                    }
                    return Boolean.toString(got != null);
                case "release":
                    semaphore.returnAll(held.pop());
                    return "";
                case "contend":
                    return contend(Integer.parseInt(args[0]));
                default:
                    throw new IllegalArgumentException("a semaphore has no " + method);
            }
        }

        private String contend(int times) throws Exception {
            List<String> spans = new ArrayList<>();
            for (int i = 0; i < times; i++) {
                Lease lease = semaphore.acquire();
                long from = System.currentTimeMillis();
                TimeUnit.MILLISECONDS.sleep(2);
                spans.add(from + "-" + System.currentTimeMillis());
                semaphore.returnLease(lease);
            }
            return String.join(",", spans);
        }
    }
}
