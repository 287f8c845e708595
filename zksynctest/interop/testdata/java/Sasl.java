import java.util.List;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;

/**
 * Authenticates as its JAAS configuration says, creates a znode for its identity alone,
 * and reads it: Sasl SERVERS USER PATH. Prints the data, or the name of an exception.
 */
final class Sasl {
    private Sasl() {
    }

    public static void main(String[] args) throws Exception {
        Client client = new Client(args[0], 10_000, 5_000); // a server hangs up on a wrong password
        try {
            client.curator.create()
                    .withMode(CreateMode.PERSISTENT)
                    .withACL(List.of(new ACL(ZooDefs.Perms.ALL, new Id("sasl", args[1]))))
                    .forPath(args[2], "curator".getBytes());
            System.out.println(new String(client.curator.getData().forPath(args[2])));
        } catch (Exception e) {
            System.out.println(e.getClass().getSimpleName());
        }
        client.close();
    }
}
