package zksync_test

import (
	"context"
	"fmt"
	"log"

	"github.com/go-zksync/toolkit/zksync"
)

func ExampleElection() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	e := zksync.NewElection(m, "/master", zksync.WithID("node-1"))
	lead, err := e.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	leader, err := e.Leader(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(leader.ID, "leads:", lead.Err() == nil)
	if err := e.Resign(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("resigned:", context.Cause(lead))
	// Output:
	// node-1 leads: true
	// resigned: zksync: released
}

// The leader does the work. Run campaigns again after every loss, and ends when the
// work does.
func ExampleElection_Run() {
	m, stop := startExample()
	defer stop()

	e := zksync.NewElection(m, "/master")
	err := e.Run(context.Background(), func(ctx context.Context) error {
		_, ok := zksync.Token(ctx)
		fmt.Println("leading, with a token:", ok)
		return nil // a long-running worker returns when ctx is done
	})
	fmt.Println(err)
	// Output:
	// leading, with a token: true
	// <nil>
}

// A listener that wants to hear true or false ranges over Observe.
func ExampleElection_Observe() {
	m, stop := startExample()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	e := zksync.NewElection(m, "/master", zksync.WithID("node-1"))
	changes := e.Observe(ctx).Events()
	fmt.Println("we lead:", (<-changes).ID == "node-1")
	if _, err := e.Campaign(ctx); err != nil {
		log.Fatal(err)
	}
	for c := range changes {
		fmt.Println("we lead:", c.ID == "node-1")
		if c.ID == "" {
			break
		}
		if err := e.Resign(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// we lead: false
	// we lead: true
	// we lead: false
}

func ExampleElection_Candidates() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	e := zksync.NewElection(m, "/master", zksync.WithID("node-1"))
	if _, err := e.Campaign(ctx); err != nil {
		log.Fatal(err)
	}
	all, err := e.Candidates(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range all {
		fmt.Println(c.ID)
	}
	// Output: node-1
}

func ExampleGroup() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	g := zksync.NewGroup(m, "/services/api")
	me, err := g.Join(ctx, "host-1", []byte("10.0.0.1:8080"))
	if err != nil {
		log.Fatal(err)
	}
	members, err := g.Members(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range members {
		fmt.Printf("%s at %s\n", m.ID, m.Data)
	}
	if err := me.Leave(); err != nil {
		log.Fatal(err)
	}
	// Output: host-1 at 10.0.0.1:8080
}

func ExampleGroup_Watch() {
	m, stop := startExample()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	g := zksync.NewGroup(m, "/services/api")
	lists := g.Watch(ctx).Events()
	fmt.Println(len(<-lists), "members")
	me, err := g.Join(ctx, "host-1", nil)
	if err != nil {
		log.Fatal(err)
	}
	for members := range lists {
		fmt.Println(len(members), "members")
		if len(members) == 0 {
			break
		}
		if err := me.Leave(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 0 members
	// 1 members
	// 0 members
}

// The candidates of this election race for one ephemeral znode, as Kafka's controllers
// do. Plain clients that create the same znode take part.
func ExampleWithLayout_ephemeral() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	e := zksync.NewElection(m, "/controller", zksync.WithID("broker-1"), zksync.WithLayout(zksync.LayoutEphemeral))
	if _, err := e.Campaign(ctx); err != nil {
		log.Fatal(err)
	}
	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	data, _, err := s.Get(ctx, "/controller")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("the leader is %s\n", data)
	if err := e.Resign(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// the leader is broker-1
}
