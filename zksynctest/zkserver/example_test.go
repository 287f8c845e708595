package zkserver_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// connect opens a session of the stock client over memory.
func connect(s *zkserver.Server) *zk.Conn {
	conn, events, err := zk.Connect([]string{"127.0.0.1:2181"}, 10*time.Second,
		zk.WithLogInfo(false), zk.WithLogger(quiet{}),
		zk.WithDialer(func(network, address string, _ time.Duration) (net.Conn, error) {
			return s.Dial(context.Background(), network, address)
		}))
	if err != nil {
		panic(err)
	}
	for ev := range events {
		if ev.State == zk.StateHasSession {
			break
		}
	}
	return conn
}

func Example() {
	server, err := zkserver.New(zkserver.Config{})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	conn := connect(server)
	defer conn.Close()

	path, err := conn.Create("/worker-", []byte("host a"), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	fmt.Println(path, err)
	_, _, gone, _ := conn.ExistsW(path)
	if err := server.Delete(path); err != nil {
		panic(err)
	}
	fmt.Println((<-gone).Type)
	// Output:
	// /worker-0000000000 <nil>
	// EventNodeDeleted
}

// The create is done and its reply lost: what a client must expect of every write.
// A follower that lags shows what was until its client asks for more.
func ExampleEndpoint_Lag() {
	server, err := zkserver.NewEnsemble(zkserver.Config{}, 3)
	if err != nil {
		panic(err)
	}
	defer server.Close()
	conn := connect(server) // to 127.0.0.1:2181, the first endpoint
	defer conn.Close()

	server.Endpoint(1).Lag()
	if err := server.Create("/news", nil); err != nil {
		panic(err)
	}
	there, _, err := conn.Exists("/news")
	fmt.Println(there, err)
	if _, err := conn.Sync("/"); err != nil {
		panic(err)
	}
	there, _, err = conn.Exists("/news")
	fmt.Println(there, err)
	// Output:
	// false <nil>
	// true <nil>
}

// With the end of a leader a new epoch begins, and sessions go on.
func ExampleNewEnsemble() {
	server, err := zkserver.NewEnsemble(zkserver.Config{}, 3)
	if err != nil {
		panic(err)
	}
	defer server.Close()
	fmt.Printf("%d leads, zxid %#x\n", server.Leader(), server.Zxid())
	server.Endpoint(server.Leader()).Stop()
	fmt.Printf("%d leads, zxid %#x\n", server.Leader(), server.Zxid())
	server.Endpoint(server.Leader()).Stop()
	fmt.Printf("%d leads\n", server.Leader())
	// Output:
	// 3 leads, zxid 0x100000000
	// 2 leads, zxid 0x200000000
	// 0 leads
}

func ExampleServer_Inject() {
	server, err := zkserver.New(zkserver.Config{})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	conn := connect(server)
	defer conn.Close()

	lost := server.Inject(zkserver.Fault{
		Op: zkserver.OpCreate,
		At: zkserver.AfterCommit,
		Do: zkserver.Disconnect,
	})
	_, err = conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
	<-lost.Fired()
	_, there := server.Get("/a")
	fmt.Println(err)
	fmt.Println("created:", there)
	// Output:
	// zk: connection closed
	// created: true
}
