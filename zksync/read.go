package zksync

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// maxReads is how many reads of one listing are under way at once.
const maxReads = 256

type znode struct {
	name string
	data []byte
	stat *zk.Stat
}

// readAll reads those children of dir that are still there, in the order of
// names.
func readAll(ctx context.Context, s *session.Session, dir string, names []string) ([]znode, error) {
	all := make([]znode, len(names))
	errs := make([]error, len(names))
	slots := make(chan struct{}, maxReads)
	var wg sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			data, stat, err := s.Get(ctx, child(dir, name))
			if err == nil {
				all[i] = znode{name, data, stat}
			} else if session.ClassOf(err) != session.ClassNoNode {
				errs[i] = err
			}
		})
	}
	wg.Wait()
	found := all[:0]
	for _, z := range all {
		if z.stat != nil {
			found = append(found, z)
		}
	}
	return found, errors.Join(errs...)
}
