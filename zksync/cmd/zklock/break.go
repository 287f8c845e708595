package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// A breakCommand takes a lock away from its holders.
type breakCommand struct {
	path string
	id   string
	all  bool
	yes  bool
}

func (c *breakCommand) flags(fs *flag.FlagSet) {
	fs.StringVar(&c.id, "id", "", "only contenders with this `id`, waiting ones included")
	fs.BoolVar(&c.all, "all", false, "waiting contenders, too")
	fs.BoolVar(&c.yes, "yes", false, "do not ask")
}

func (c *breakCommand) parse(args []string) (err error) {
	c.path, err = onePath(args)
	return err
}

// breakable are the kinds whose participants hold or wait.
var breakable = map[zksync.Kind]bool{zksync.KindLock: true, zksync.KindRWLock: true, zksync.KindSemaphore: true, zksync.KindElection: true}

// errNothingBroken is the error if there was no holder, or the answer was no.
var errNothingBroken = errors.New("nothing was broken")

func (c *breakCommand) run(ctx context.Context, p *program) int {
	m, err := p.ensemble.open(ctx, 0)
	if err != nil {
		return p.failed(ctx, err)
	}
	defer unlessStopped(ctx, m.Close)
	broken, err := c.remove(ctx, p, m)
	if p.json {
		if broken == nil {
			broken = []participant{}
		}
		printJSON(p.stdout, broken)
	}
	switch {
	case errors.Is(err, errNothingBroken):
		fmt.Fprintf(p.stderr, "zklock: %v\n", err)
		return statusConflict
	case err != nil:
		return p.failed(ctx, err)
	}
	if found, err := zksync.Inspect(ctx, m, c.path); err == nil && !p.json {
		fmt.Fprintf(p.stdout, "now %s\n", describe(found))
	}
	return 0
}

// remove deletes the znodes of the chosen contenders, and returns those contenders.
func (c *breakCommand) remove(ctx context.Context, p *program, m *session.Manager) (broken []participant, err error) {
	found, err := zksync.Inspect(ctx, m, c.path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, fmt.Errorf("%w: there is no znode %s", errNothingBroken, c.path)
	}
	if err != nil {
		return nil, err
	}
	e := entryOf(found)
	if !breakable[e.Kind] {
		return nil, fmt.Errorf("%w: no holder at %s, whose kind is %v", errNothingBroken, c.path, e.Kind)
	}
	var chosen []participant
	for _, one := range e.Participants {
		if c.id != "" && one.ID == c.id || c.id == "" && (one.Holds || c.all) {
			chosen = append(chosen, one)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%w: no such contender at %s", errNothingBroken, c.path)
	}
	answers := bufio.NewReader(p.stdin)
	for _, one := range chosen {
		if !c.yes && !c.ask(ctx, p, answers, one) {
			if ctx.Err() != nil {
				return broken, ctx.Err()
			}
			continue
		}
		deleted, err := deleteZnode(ctx, m, one)
		if err != nil {
			return broken, err
		}
		if !deleted {
			fmt.Fprintf(p.stderr, "zklock: %s has left %s already\n", orUnnamed(one.ID), c.path)
			continue
		}
		broken = append(broken, one)
	}
	if len(broken) == 0 {
		return nil, errNothingBroken
	}
	return broken, nil
}

// ask asks on the standard error, so that the output remains JSON. The answer is no if ctx
// ends first, though the standard input is read on.
func (c *breakCommand) ask(ctx context.Context, p *program, answers *bufio.Reader, one participant) bool {
	fmt.Fprintf(p.stderr, "%s %s %s, in line for %v (session %s, token %d, client %s).\nIts process goes on unless it watches its own znode. Take %s away? [y/N] ",
		orUnnamed(one.ID), one.verb(), c.path, age(one.Since), one.Session, one.Token, orUnknown(one.Client), c.path)
	line := make(chan string, 1)
	go func() {
		answer, _ := answers.ReadString('\n')
		line <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-line:
		return ctx.Err() == nil && (answer == "y" || answer == "yes")
	case <-ctx.Done():
		fmt.Fprintln(p.stderr)
		return false
	}
}

func orUnknown(c zksync.Client) zksync.Client {
	return cmp.Or(c, "unknown")
}

// deleteZnode deletes the znode of a contender, unless another znode has taken its name, and
// reports whether it did. It is true also if the answer to a deletion was lost and the znode
// is gone.
func deleteZnode(ctx context.Context, m *session.Manager, one participant) (deleted bool, err error) {
	unanswered := false
	err = m.Do(ctx, func(ctx context.Context, s *session.Session) error {
		sent := false
		err := s.DeleteSeen(ctx, one.Path, func(ok bool, stat *zk.Stat, err error) (int32, error) {
			if err == nil && (!ok || stat.Czxid != one.Token) {
				err = zk.ErrNoNode
			}
			if sent = err == nil; !sent {
				return 0, err
			}
			return stat.Version, nil
		})
		if errors.Is(err, zk.ErrNoNode) {
			deleted = unanswered
			return nil
		}
		deleted = err == nil
		unanswered = unanswered || sent && session.ClassOf(err) == session.ClassConnectionLost
		return err
	})
	return deleted, err
}
