package session_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A page of a program shows the calls that wait.
func ExampleWaitStats() {
	m, stop := start(context.Background())
	defer stop()

	wait := m.StartWait("deploy", "/app/lock", func(context.Context) error { return errors.New("for a window") })
	defer wait.Stop()
	for _, w := range m.Stats().Waits {
		fmt.Println(w.Op, w.Path, !w.Since.After(time.Now()))
	}
	// Output: deploy /app/lock true
}

// A program follows the state of its session.
func ExampleState() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	states := m.States(ctx)
	fmt.Println(<-states)
	m.Close()
	fmt.Println(<-states == session.Closed)
	// Output:
	// Connected
	// true
}

// The class of an error determines the action of a caller.
func ExampleClassOf() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = s.Set(ctx, "/none", nil, -1)
	switch class := session.ClassOf(err); {
	case class == session.ClassNoNode:
		fmt.Println("create it first")
	case class.Again():
		fmt.Println("try again")
	}
	// Output: create it first
}

// An error names the operation and the znode, and wraps the cause.
func ExampleError() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, _, err = s.Get(ctx, "/none")
	var failed *session.Error
	if errors.As(err, &failed) {
		fmt.Println(failed.Op, failed.Path, errors.Is(err, zk.ErrNoNode))
	}
	// Output: get /none true
}

// Reads of many znodes take one round trip.
func ExampleReadResult() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Create(ctx, "/config", []byte("color=blue"), 0); err != nil {
		log.Fatal(err)
	}
	results, err := s.MultiRead(ctx, session.ReadData("/config"), session.ReadChildren("/"), session.ReadData("/none"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %v %v\n", results[0].Data, results[1].Children, errors.Is(results[2].Err, zk.ErrNoNode))
	// Output: color=blue [config zookeeper] true
}

// A Read names one of the znodes of a MultiRead.
func ExampleReadData() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	var reads []session.Read
	for _, path := range []string{"/a", "/b"} {
		reads = append(reads, session.ReadData(path))
	}
	results, err := s.MultiRead(ctx, reads...)
	fmt.Println(len(results), err)
	// Output: 2 <nil>
}

// A Followup reads a znode right behind a transaction that changes it, in the same round trip.
func ExampleFollowup() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	reads := []session.Read{session.ReadData("/config"), session.ReadChildren("/")}
	f := s.NewFollowup(reads)
	if _, err := f.Multi(ctx, &zk.CreateRequest{Path: "/config", Data: []byte("color=blue")}); err != nil {
		log.Fatal(err)
	}
	var results []session.ReadResult
	if all := f.Results(ctx); all != nil {
		results = all[0]
	} else if results, err = s.MultiRead(ctx, reads...); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %v\n", results[0].Data, results[1].Children)
	// Output: color=blue [config zookeeper]
}

// An Inbox delivers the answers and the events of a znode in their order.
func ExampleInbox_Receive() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Create(ctx, "/config", []byte("color=blue"), 0); err != nil {
		log.Fatal(err)
	}
	in := s.NewInbox()
	defer in.Close()
	in.Data("/config", "the config")
	for {
		batch, err := in.Receive(ctx)
		if err != nil {
			log.Fatal(err)
		}
		for _, d := range batch {
			switch d.Kind {
			case session.InboxAnswer:
				data, _, err := d.Data()
				fmt.Printf("%v: %s %v\n", d.Tag, data, err)
				if _, err := s.Set(ctx, "/config", []byte("color=green"), -1); err != nil {
					log.Fatal(err)
				}
			case session.InboxEvent:
				fmt.Println(d.Event)
				return
			}
		}
	}
	// Output:
	// the config: color=blue <nil>
	// EventNodeDataChanged
}

// A Delivery of the kind InboxPost comes from another goroutine of the program.
func ExampleDeliveryKind() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	in := s.NewInbox()
	defer in.Close()
	go in.Post("refresh")
	for {
		batch, err := in.Receive(ctx)
		if err != nil {
			log.Fatal(err)
		}
		for _, d := range batch {
			if d.Kind == session.InboxPost {
				fmt.Println(d.Tag)
				return
			}
		}
	}
	// Output: refresh
}

// A read that was stopped delivers nothing. The names of a Delivery share memory with
// the answer: clone a name to keep it.
func ExampleInboxRead_Stop() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := s.MakeDir(ctx, "/services/api"); err != nil {
		log.Fatal(err)
	}
	in := s.NewInbox()
	defer in.Close()
	unwanted := in.Children("/", "all")
	unwanted.Stop()
	in.Children("/services", "services")
	for {
		batch, err := in.Receive(ctx)
		if err != nil {
			log.Fatal(err)
		}
		for _, d := range batch {
			if d.Kind == session.InboxAnswer {
				names, _, err := d.Names()
				if err != nil {
					log.Fatal(err)
				}
				for name := range names {
					fmt.Println(d.Tag, strings.Clone(name))
				}
				return
			}
		}
	}
	// Output: services api
}

// The status of an Ephemeral shows when the znode exists.
func ExampleEphemeralStatus() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	e, err := m.Ephemeral(ctx, "/services/api/host-1", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-e.Status() == session.Present)
	if err := e.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: true
}

// WithSequence lets the servers number the znodes, so that no name is taken.
func ExampleWithSequence() {
	ctx := context.Background()
	m, stop := start(ctx)
	defer stop()

	var numbers []string
	for range 2 {
		e, err := m.Ephemeral(ctx, "/workers/w-", nil, session.WithSequence())
		if err != nil {
			log.Fatal(err)
		}
		defer e.Close()
		for status := range e.Status() {
			if status == session.Present {
				break
			}
		}
		numbers = append(numbers, e.Path()[len(e.Path())-10:])
	}
	fmt.Println(numbers)
	// Output: [0000000000 0000000001]
}

// A dialer of the program limits the time of a dial.
func ExampleDialFunc() {
	srv := serve(zkserver.Config{})
	defer srv.Close()

	var dial session.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return srv.Dial(ctx, network, address) // elsewhere: (&net.Dialer{}).DialContext
	}
	m, err := session.Connect(context.Background(), "127.0.0.1:2181", session.WithDialer(dial))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.State())
	m.Close()
	// Output: Connected
}

// plain is an exchange of one token: the name and the password of a user.
type plain struct{}

func (plain) Next(challenge []byte) (response []byte, done bool, err error) {
	if len(challenge) > 0 {
		return nil, false, fmt.Errorf("the server asks for %q, want nothing more", challenge)
	}
	return nil, true, nil
}

// An exchange answers the challenges of the server for one connection.
func ExampleSASLExchange() {
	var exchange session.SASLExchange = plain{}
	_, done, err := exchange.Next(nil)
	fmt.Println(done, err)
	_, _, err = exchange.Next([]byte("realm"))
	fmt.Println(err)
	// Output:
	// true <nil>
	// the server asks for "realm", want nothing more
}
