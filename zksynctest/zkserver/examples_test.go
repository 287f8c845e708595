package zkserver_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// started starts a server and a connected stock client.
func started(cfg zkserver.Config) (*zkserver.Server, *zk.Conn, func()) {
	server, err := zkserver.New(cfg)
	if err != nil {
		panic(err)
	}
	conn := connect(server)
	return server, conn, func() {
		conn.Close()
		server.Close()
	}
}

// A server with a super user and a limit of the request length.
func ExampleConfig() {
	server, err := zkserver.New(zkserver.Config{
		TickTime:  100 * time.Millisecond,
		SASLUsers: map[string]string{"bob": "secret"},
		MaxFrame:  64 << 10,
	})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	address, err := server.Listen("127.0.0.1:0") // for any client, in any language
	fmt.Println(strings.HasPrefix(address.String(), "127.0.0.1:"), err)
	// Output: true <nil>
}

// A zoo.cfg of a real server configures this server.
func ExampleParseConfig() {
	file, err := zkserver.ParseConfig(strings.NewReader(`
tickTime=500
clientPort=2181
server.1=zk1:2888:3888;2181
snapCount=100000
`))
	if err != nil {
		panic(err)
	}
	fmt.Println(file.Config.TickTime, file.ClientAddr)
	for _, member := range file.Servers {
		fmt.Println(member.ID, member.ClientPort())
	}
	for _, key := range file.Ignored {
		fmt.Println("ignored:", key.Line, key.Key)
	}
	// Output:
	// 500ms :2181
	// 1 2181
	// ignored: 5 snapCount
}

// A member of an ensemble has a number and optionally a client port.
func ExampleConfigServer() {
	member := zkserver.ConfigServer{ID: 1, Value: "zk1:2888:3888;2181"}
	fmt.Println(member.ID, member.ClientPort())
	// Output: 1 2181
}

// A program reports the keys of a configuration file that have no effect.
func ExampleIgnoredKey() {
	file, err := zkserver.ParseConfig(strings.NewReader("autopurge.purgeInterval=1\n"))
	if err != nil {
		panic(err)
	}
	for _, key := range file.Ignored {
		fmt.Println(key.Line, key.Key, key.Value, key.Why != "")
	}
	// Output: 1 autopurge.purgeInterval 1 true
}

// The operator calls return the error codes of the protocol.
func ExampleCode() {
	server, _, stop := started(zkserver.Config{})
	defer stop()

	err := server.Delete("/none")
	fmt.Println(err, errors.Is(err, zkserver.ErrNoNode))
	// Output: zkserver: Delete /none: zkserver: no node true
}

// The second reply to a client is delayed by half a second.
func ExampleDelay() {
	server, conn, stop := started(zkserver.Config{})
	defer stop()

	server.Inject(zkserver.Fault{Op: zkserver.OpExists, Nth: 2, At: zkserver.BeforeReply, Do: zkserver.Delay(500 * time.Millisecond)})
	for range 2 {
		began := time.Now()
		if _, _, err := conn.Exists("/a"); err != nil {
			panic(err)
		}
		fmt.Println(time.Since(began) >= 500*time.Millisecond)
	}
	// Output:
	// false
	// true
}

// A fault that strikes the first two creates below a directory.
func ExampleFault() {
	server, conn, stop := started(zkserver.Config{})
	defer stop()

	fault := zkserver.Fault{Op: zkserver.OpCreate, Path: "/jobs/*", Times: 2, Do: zkserver.Error(zkserver.ErrNoAuth)}
	fmt.Println(fault)
	denied := server.Inject(fault)
	for _, path := range []string{"/jobs", "/jobs/a", "/jobs/b", "/jobs/c"} {
		_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		fmt.Println(path, err)
	}
	fmt.Println("struck", denied.Count(), "times")
	// Output:
	// Error(-102) BeforeCommit of create on /jobs/*, 2 times
	// /jobs <nil>
	// /jobs/a zk: not authenticated
	// /jobs/b zk: not authenticated
	// /jobs/c <nil>
	// struck 2 times
}

// The moment of a fault decides whether the request is carried out.
func ExampleMoment() {
	for _, moment := range []zkserver.Moment{zkserver.BeforeCommit, zkserver.AfterCommit} {
		server, conn, stop := started(zkserver.Config{})
		server.Inject(zkserver.Fault{Op: zkserver.OpCreate, At: moment, Do: zkserver.Disconnect})
		conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
		_, created := server.Get("/a")
		fmt.Println(moment, created)
		stop()
	}
	// Output:
	// BeforeCommit false
	// AfterCommit true
}

// A test counts the requests of a call.
func ExampleServer_Ops() {
	server, conn, stop := started(zkserver.Config{})
	defer stop()

	server.ResetOps()
	if _, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		panic(err)
	}
	conn.Delete("/none", -1)
	for _, op := range server.Ops() {
		fmt.Println(op.Code, op.Path, zkserver.Code(op.Err).String())
	}
	// Output:
	// create /a ok
	// delete /none no node
}

// A test counts the writes alone.
func ExampleOpCode() {
	server, conn, stop := started(zkserver.Config{})
	defer stop()

	server.ResetOps()
	conn.Exists("/a")
	conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
	conn.Set("/a", []byte("1"), -1)
	writes := 0
	for _, op := range server.Ops() {
		switch op.Code {
		case zkserver.OpCreate, zkserver.OpSetData, zkserver.OpDelete, zkserver.OpMulti:
			writes++
		}
	}
	fmt.Println(writes, "writes")
	// Output: 2 writes
}

// The operations of a transaction have separate results.
func ExampleSubOp() {
	server, conn, stop := started(zkserver.Config{})
	defer stop()

	server.ResetOps()
	conn.Multi(
		&zk.CreateRequest{Path: "/a", Acl: zk.WorldACL(zk.PermAll)},
		&zk.CheckVersionRequest{Path: "/none", Version: 0},
	)
	for _, op := range server.Ops() {
		for _, sub := range op.Sub {
			fmt.Println(sub.Code, sub.Path, zkserver.Code(sub.Err).String())
		}
	}
	// Output:
	// create /a ok
	// check /none no node
}

// A fault drops a watch event.
func ExampleEventType() {
	server, conn, stop := started(zkserver.Config{})
	defer stop()

	lost := server.Inject(zkserver.Fault{At: zkserver.OnWatch, Do: zkserver.Drop, Match: func(op zkserver.Op) bool {
		return op.Event == zkserver.EventCreated
	}})
	if _, _, _, err := conn.ExistsW("/a"); err != nil {
		panic(err)
	}
	if err := server.Create("/a", nil); err != nil {
		panic(err)
	}
	<-lost.Fired()
	fmt.Println(lost.Fault())
	// Output: Drop OnWatch if it matches
}

// A status page lists the sessions of the server.
func ExampleServer_Sessions() {
	server, conn, stop := started(zkserver.Config{})
	defer stop()

	if _, err := conn.Create("/me", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		panic(err)
	}
	for _, s := range server.Sessions() {
		fmt.Println(s.ID == conn.SessionID(), s.Timeout, s.Connected, s.Ephemerals)
	}
	// Output: true 10s true [/me]
}

// A test limits the traffic that a call causes.
func ExampleServer_Traffic() {
	server, conn, stop := started(zkserver.Config{})
	defer stop()

	before := server.Traffic(conn.SessionID())
	if _, _, err := conn.Exists("/a"); err != nil {
		panic(err)
	}
	after := server.Traffic(conn.SessionID())
	fmt.Println(after.Requests-before.Requests, "request,", after.BytesOut-before.BytesOut, "bytes")
	// Output: 1 request, 20 bytes
}

// After a freeze that is longer than a session timeout, the ThawOrder decides the result of the
// session's requests.
func ExampleThawOrder() {
	server, _, stop := started(zkserver.Config{})
	defer stop()

	for _, order := range []zkserver.ThawOrder{zkserver.SweepFirst, zkserver.RequestsFirst} {
		server.SetThawOrder(order)
		server.Freeze()
		server.Thaw()
		fmt.Println(order)
	}
	// Output:
	// SweepFirst
	// RequestsFirst
}
