package zkserver_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// connect opens a session of the stock client to the first endpoint in memory.
func connect(s *zkserver.Server) *zk.Conn { return connectTo(s, s.Endpoint(1)) }

func connectTo(s *zkserver.Server, e *zkserver.Endpoint) *zk.Conn {
	conn, events, err := zk.Connect([]string{e.Addr()}, 10*time.Second,
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

// A lagging follower shows an old state until its client sends a sync.
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

// The end of a leader begins a new epoch, and sessions continue.
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

// A deposed leader answers a sync, and does not see the commits of the next leader.
func ExampleServer_Depose() {
	server, err := zkserver.NewEnsemble(zkserver.Config{}, 3)
	if err != nil {
		panic(err)
	}
	defer server.Close()
	conn := connectTo(server, server.Endpoint(3))
	defer conn.Close()

	old := server.Depose()
	fmt.Printf("%d was deposed, %d leads\n", old, server.Leader())
	if err := server.Create("/news", nil); err != nil {
		panic(err)
	}
	_, err = conn.Sync("/")
	fmt.Println(err)
	there, _, err := conn.Exists("/news")
	fmt.Println(there, err)
	// Output:
	// 3 was deposed, 2 leads
	// <nil>
	// false <nil>
}

// The create is carried out and its reply is lost: every client must handle this outcome of a
// write.
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
