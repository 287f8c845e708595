import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.leader.LeaderElectionSupport;

/** The elections of Curator and of ZooKeeper. */
final class Elections {
    private Elections() {}

    private static String ids(Iterable<Participant> participants) {
        List<String> ids = new ArrayList<>();
        for (Participant p : participants) {
            ids.add(p.getId() + (p.isLeader() ? "*" : ""));
        }
        return String.join(",", ids);
    }

    /** Curator's LeaderLatch. */
    static final class Latch implements Recipe {
        private final LeaderLatch latch;

        Latch(CuratorFramework curator, String path, String id) {
            latch = new LeaderLatch(curator, path, id);
        }

        @Override
        public String call(String method, String[] args) throws Exception {
            switch (method) {
                case "start":
                    latch.start();
                    return "";
                case "await":
                    return Boolean.toString(latch.await(Long.parseLong(args[0]), TimeUnit.MILLISECONDS));
                case "leads":
                    return Boolean.toString(latch.hasLeadership());
                case "leader":
                    return latch.getLeader().getId();
                case "participants":
                    return ids(latch.getParticipants());
                case "close":
                    latch.close();
                    return "";
                default:
                    throw new IllegalArgumentException("a latch has no " + method);
            }
        }
    }

    /** Curator's LeaderSelector. */
    static final class Selector implements Recipe {
        private final LeaderSelector selector;
        private final CountDownLatch leading = new CountDownLatch(1);
        private final CountDownLatch yield = new CountDownLatch(1);

        Selector(CuratorFramework curator, String path, String id) {
            selector = new LeaderSelector(curator, path, new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework client) throws Exception {
                    leading.countDown();
                    yield.await();
                }
            });
            selector.setId(id);
        }

        @Override
        public String call(String method, String[] args) throws Exception {
            switch (method) {
                case "start":
                    selector.start();
                    return "";
                case "await":
                    return Boolean.toString(leading.await(Long.parseLong(args[0]), TimeUnit.MILLISECONDS));
                case "leads":
                    return Boolean.toString(selector.hasLeadership());
                case "leader":
                    return selector.getLeader().getId();
                case "participants":
                    return ids(selector.getParticipants());
                case "close":
                    yield.countDown();
                    selector.close();
                    return "";
                default:
                    throw new IllegalArgumentException("a selector has no " + method);
            }
        }
    }

    /** The election recipe that comes with ZooKeeper. */
    static final class Support implements Recipe {
        private final LeaderElectionSupport support = new LeaderElectionSupport();
        private final LinkedBlockingQueue<String> events = new LinkedBlockingQueue<>();

        Support(ZooKeeper zk, String path, String id) {
            support.setZooKeeper(zk);
            support.setRootNodeName(path);
            support.setHostName(id);
            support.addListener(event -> events.add(event.toString()));
        }

        @Override
        public String call(String method, String[] args) throws Exception {
            switch (method) {
                case "start":
                    support.start();
                    return "";
                case "event":
                    return String.valueOf(events.poll(Long.parseLong(args[0]), TimeUnit.MILLISECONDS));
                case "leader":
                    return support.getLeaderHostName();
                case "close":
                    support.stop();
                    return "";
                default:
                    throw new IllegalArgumentException("an election has no " + method);
            }
        }
    }
}
