package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

// requests makes the rows' plain requests by a stock client, without any guarantee:
// the floor for all contenders.
type requests struct {
	rowFuncs
	*stockSessions
	conn *zk.Conn
}

func newRequests(servers string) (*requests, error) {
	sessions := &stockSessions{servers: servers}
	all, err := sessions.connect(1)
	if err != nil {
		return nil, err
	}
	r := &requests{stockSessions: sessions, conn: all[0]}
	r.rowFuncs = rowFuncs{
		"lock": r.lock, "election": r.election, "put": r.put, "deliver": r.deliver,
		"handover": func(ctx context.Context, j job) (sample, error) { return r.handover(ctx, j, stand) },
	}
	return r, nil
}

func (r *requests) name() string { return bare }

// sameRequests is a hand-over by the very requests that the toolkit makes.
type sameRequests struct{ *requests }

func newSameRequests(servers string) (sameRequests, error) {
	r, err := newRequests(servers)
	if err != nil {
		return sameRequests{}, err
	}
	r.rowFuncs = rowFuncs{"handover": func(ctx context.Context, j job) (sample, error) { return r.handover(ctx, j, standAndLook) }}
	return sameRequests{r}, nil
}

func (sameRequests) name() string { return same }

// handover measures a line whose contenders join by stand and leave at once.
func (r *requests) handover(ctx context.Context, j job, stand func(context.Context, *zk.Conn, string) (string, error)) (sample, error) {
	conns, err := r.connect(j.Sessions)
	if err != nil {
		return sample{}, err
	}
	if err := makeParents(r.conn, j.Path); err != nil {
		return sample{}, err
	}
	gate, err := stand(ctx, r.conn, j.Path)
	if err != nil {
		return sample{}, err
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range j.Clients {
		conn := conns[i%len(conns)]
		g.Go(func() error {
			for range j.Ops / j.Clients {
				name, err := stand(ctx, conn, j.Path)
				if err != nil {
					return err
				}
				if err := conn.Delete(name, -1); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := joined(ctx, r.conn, j.Path, j.Clients+1); err != nil {
		return sample{}, err
	}
	return timed(j.Ops, func() error { return errors.Join(r.conn.Delete(gate, -1), g.Wait()) })
}

// election is a line of two: the delete of one, and the event that tells the other.
func (r *requests) election(ctx context.Context, j job) (sample, error) {
	conns, err := r.connect(2)
	if err != nil {
		return sample{}, err
	}
	if err := makeParents(r.conn, j.Path); err != nil {
		return sample{}, err
	}
	place, err := stand(ctx, conns[0], j.Path)
	if err != nil {
		return sample{}, err
	}
	total := sample{Ops: j.Ops}
	for i := range j.Ops {
		first, second := conns[i%2], conns[(i+1)%2]
		next := ""
		var g errgroup.Group
		g.Go(func() (err error) {
			next, err = stand(ctx, second, j.Path)
			return err
		})
		if err := joined(ctx, r.conn, j.Path, 2); err != nil {
			return sample{}, err
		}
		s, err := timed(1, func() error { return errors.Join(first.Delete(place, -1), g.Wait()) })
		if err != nil {
			return sample{}, err
		}
		total.Elapsed += s.Elapsed
		place = next
	}
	return total, nil
}

// stand joins the line and returns our znode when it is the first. It makes the
// fewest requests that a line can make: a create, a watch on the predecessor, and a
// delete. The predecessor's number is the one before ours, because the directory has
// no other children. stand does not handle lost answers.
func stand(ctx context.Context, conn *zk.Conn, path string) (string, error) {
	name, err := conn.Create(path+"/", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		return "", err
	}
	number, err := strconv.Atoi(name[len(path)+1:])
	if err != nil {
		return "", err
	}
	there, _, gone, err := conn.ExistsW(fmt.Sprintf("%s/%010d", path, number-1))
	if err != nil || !there {
		return name, err
	}
	return name, await(ctx, gone)
}

// standAndLook is stand with the requests of a line in which names do not follow from
// each other and any contender may leave at any time. It looks up the contenders in
// front, and, when the farther of the two nearest has left, looks whether the nearer
// is the last. It ignores most answers.
func standAndLook(ctx context.Context, conn *zk.Conn, path string) (string, error) {
	const likeAGUID = "/_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-"
	answers, err := conn.Multi(
		&zk.CreateRequest{Path: path + likeAGUID, Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeral | zk.FlagSequence},
		&zk.SetDataRequest{Path: path, Data: []byte{}, Version: -1})
	if err != nil {
		return "", err
	}
	name := answers[0].String
	if answers[1].Stat.NumChildren == 1 {
		return name, nil
	}
	number, err := strconv.Atoi(name[len(path)+len(likeAGUID):])
	if err != nil {
		return "", err
	}
	var g errgroup.Group
	g.Go(func() error {
		_, _, _, err := conn.GetW(name)
		return err
	})
	if _, _, err := conn.Children(path); err != nil {
		return "", errors.Join(err, g.Wait())
	}
	var gone [2]<-chan zk.Event // of the farther one, and of the nearer
	for i := range gone {
		g.Go(func() (err error) {
			_, _, gone[i], err = conn.GetW(fmt.Sprintf("%s%s%010d", path, likeAGUID, number-2+i))
			if errors.Is(err, zk.ErrNoNode) {
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return "", err
	}
	if err := await(ctx, gone[0]); err != nil {
		return "", err
	}
	if _, _, err := conn.Children(path); err != nil {
		return "", err
	}
	return name, await(ctx, gone[1])
}

// await waits for an event, or for nothing where there is no watch.
func await(ctx context.Context, event <-chan zk.Event) error {
	if event == nil {
		return nil
	}
	select {
	case <-event:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *requests) lock(ctx context.Context, j job) (sample, error) {
	if err := makeParents(r.conn, j.Path); err != nil {
		return sample{}, err
	}
	return timed(j.Ops, func() error {
		for range j.Ops {
			if err := ctx.Err(); err != nil {
				return err
			}
			name, err := r.conn.Create(j.Path+"/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
			if err != nil {
				return err
			}
			if err := r.conn.Delete(name, -1); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *requests) put(ctx context.Context, j job) (sample, error) {
	if err := makeParents(r.conn, j.Path); err != nil {
		return sample{}, err
	}
	batch := make([]any, min(64, j.Clients)) // one goroutine has nothing to put together
	for i := range batch {
		batch[i] = &zk.CreateRequest{Path: j.Path + "/qn-", Data: message, Flags: zk.FlagSequence, Acl: zk.WorldACL(zk.PermAll)}
	}
	return timed(j.Ops, func() error {
		for done := 0; done < j.Ops; done += len(batch) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if _, err := r.conn.Multi(batch...); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *requests) deliver(ctx context.Context, j job) (sample, error) {
	if err := makeParents(r.conn, j.Path); err != nil {
		return sample{}, err
	}
	var batch []any
	for done := 0; done < j.Backlog; {
		batch = batch[:0]
		for ; len(batch) < 1000 && done < j.Backlog; done++ {
			batch = append(batch, &zk.CreateRequest{Path: j.Path + "/qn-", Data: message, Flags: zk.FlagSequence, Acl: zk.WorldACL(zk.PermAll)})
		}
		if _, err := r.conn.Multi(batch...); err != nil {
			return sample{}, err
		}
	}
	return timed(j.Ops, func() error {
		names, _, err := r.conn.Children(j.Path)
		if err != nil {
			return err
		}
		slices.Sort(names)
		for chunk := range slices.Chunk(names, 128) {
			if err := ctx.Err(); err != nil {
				return err
			}
			batch = batch[:0]
			for _, name := range chunk {
				batch = append(batch, &zk.DeleteRequest{Path: j.Path + "/" + name, Version: -1})
			}
			if _, err := r.conn.Multi(batch...); err != nil {
				return err
			}
		}
		return nil
	})
}
