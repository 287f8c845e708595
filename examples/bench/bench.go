package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// A bench has the servers and the contenders.
type bench struct {
	progress   io.Writer
	limit      time.Duration
	peers      string
	wanted     *regexp.Regexp // by name
	dir        string
	running    []*server
	addresses  map[string]string // of the servers, by system
	proxies    []*proxy          // that stand before them
	contenders []contender
	sweeper    *session.Manager
	leftOut    []string
	runs       int
}

// zookeeper is the system of most contenders.
const zookeeper = "ZooKeeper"

// start starts the servers that are not given, and notes the missing ones.
func (b *bench) start(ctx context.Context, servers string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var err error
	if b.dir, err = os.MkdirTemp("", "zksync-bench"); err != nil {
		return err
	}
	b.addresses = map[string]string{zookeeper: servers}
	if servers == "" {
		if err := b.launch(ctx, zookeeper, startZooKeeper); err != nil {
			return err
		}
	}
	for name, start := range map[string]func(context.Context, string) (*server, error){etcd: startEtcd, redis: startRedis} {
		if b.wanted.MatchString(name) {
			b.note(name, b.launch(ctx, name, start))
		}
	}
	b.sweeper, err = session.Connect(ctx, b.addresses[zookeeper])
	return err
}

func (b *bench) launch(ctx context.Context, system string, start func(context.Context, string) (*server, error)) error {
	s, err := start(ctx, b.dir)
	if err != nil {
		return err
	}
	b.running = append(b.running, s)
	b.addresses[system] = s.address
	return nil
}

// note notes that a contender is left out, unless err is nil.
func (b *bench) note(name string, err error) {
	if err != nil {
		b.leftOut = append(b.leftOut, fmt.Sprintf("%s: %v", name, err))
		fmt.Fprintf(b.progress, "without %s: %v\n", name, err)
	}
}

// open opens the contenders that are installed, at a distance from the servers.
func (b *bench) open(distance time.Duration) error {
	at := b.addresses
	if distance > 0 {
		at = make(map[string]string)
		for system, servers := range b.addresses {
			proxies, addresses, err := newProxies(servers, distance)
			b.proxies = append(b.proxies, proxies...)
			if err != nil {
				return err
			}
			at[system] = addresses
		}
	}
	zk := at[zookeeper]
	b.add(bare, func() (contender, error) { return newRequests(zk) })
	b.add(same, func() (contender, error) { return newSameRequests(zk) })
	b.add(ours, func() (contender, error) { return newToolkit(zk), nil })
	b.add(observed, func() (contender, error) { return newObserved(zk), nil })
	b.add(goZK, func() (contender, error) { return newStock(zk), nil })
	b.add(curator, func() (contender, error) { return startCurator(zk, b.peers) })
	b.add(kazoo, func() (contender, error) { return startKazoo(zk, b.peers) })
	if address, ok := at[etcd]; ok {
		b.add(etcd, func() (contender, error) { return newEtcdLocks("http://" + address) })
	}
	if address, ok := at[redis]; ok {
		b.add(redis, func() (contender, error) { return newRedisLocks(address), nil })
	}
	return nil
}

func (b *bench) add(name string, open func() (contender, error)) {
	if !b.wanted.MatchString(name) {
		return
	}
	c, err := open()
	if err != nil {
		b.note(name, err)
		return
	}
	b.contenders = append(b.contenders, c)
}

// leave closes the contenders.
func (b *bench) leave() {
	for _, c := range b.contenders {
		if err := c.close(); err != nil {
			fmt.Fprintf(b.progress, "closing %s: %v\n", c.name(), err)
		}
	}
	for _, p := range b.proxies {
		if err := p.close(); err != nil {
			fmt.Fprintln(b.progress, err)
		}
	}
	b.contenders, b.proxies = nil, nil
}

func (b *bench) close() {
	if b.sweeper != nil {
		b.sweep(root)
		b.sweeper.Close()
	}
	for _, s := range b.running {
		if err := s.stop(); err != nil {
			fmt.Fprintln(b.progress, err)
		}
	}
	os.RemoveAll(b.dir)
}

// sweep removes a path, so that no row pays for znodes of an earlier row.
func (b *bench) sweep(path string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := b.sweeper.Do(ctx, func(ctx context.Context, s *session.Session) error { return deleteAll(ctx, s, path) })
	if err != nil {
		fmt.Fprintf(b.progress, "removing %s: %v\n", path, err)
	}
}

// row runs the contenders in turn, each time another one first.
func (b *bench) row(ctx context.Context, r row) (result, error) {
	res := result{Title: r.title, Unit: r.unit}
	contenders := b.contenders
	if strings.HasPrefix(r.Row, "embedded") {
		contenders = []contender{newEmbedded()}
	}
	samples := make([][]sample, len(contenders))
	failed := make([]error, len(contenders))
	for round := range r.rounds {
		for k := range contenders {
			i := (k + round) % len(contenders)
			c := contenders[i]
			if failed[i] != nil {
				continue
			}
			s, err := b.once(ctx, c, r)
			if ctx.Err() != nil {
				return res, context.Cause(ctx)
			}
			if failed[i] = err; err == nil {
				samples[i] = append(samples[i], s)
				fmt.Fprintf(b.progress, "%s, round %d of %d: %s %s %s\n", r.title, round+1, r.rounds, c.name(), number(r.value(s)), r.unit)
			} else if !errors.Is(err, errNoSuchRow) {
				fmt.Fprintf(b.progress, "%s, round %d of %d: %s: %v\n", r.title, round+1, r.rounds, c.name(), err)
			}
		}
	}
	for i, c := range contenders {
		switch {
		case errors.Is(failed[i], errNoSuchRow):
		case failed[i] != nil:
			res.Measures = append(res.Measures, measure{Contender: c.name(), Missing: failed[i].Error()})
		default:
			res.Measures = append(res.Measures, summarize(c.name(), r.value, samples[i]))
		}
	}
	return res, nil
}

func (b *bench) once(ctx context.Context, c contender, r row) (sample, error) {
	b.runs++
	j := r.job
	j.Path = fmt.Sprintf("%s/%s-%d", root, strings.ReplaceAll(r.Row, " ", "-"), b.runs)
	if few := r.few[c.name()]; few > 1 {
		j.Ops = max(j.Ops/few, j.Clients)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.limit, fmt.Errorf("%v are over", b.limit))
	defer cancel()
	runtime.GC() // no contender pays for the garbage of another
	s, err := c.run(ctx, j)
	b.sweep(j.Path)
	return s, err
}

func (b *bench) machine() string {
	return fmt.Sprintf("%s/%s, %d CPUs, %s; ZooKeeper, all contenders and their servers on the same machine.",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}
