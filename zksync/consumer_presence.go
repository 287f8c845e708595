package zksync

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// appear shows others that we consume, too, until disappear.
func (o *outlook) appear(ctx context.Context) (string, error) {
	dir := o.c.q.child(consumersName)
	for {
		path, err := o.s.CreateProtected(ctx, child(dir, "consumer"), nil, zk.FlagEphemeral)
		if err == nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.peers = 1
			return path, nil
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return "", err
		}
		if err := o.s.MakeDir(ctx, dir); err != nil {
			return "", err
		}
	}
}

func (o *outlook) disappear(path string) {
	o.mu.Lock()
	o.peers = 0
	o.mu.Unlock()
	if o.s.Err() == nil {
		select {
		case <-o.s.Discard(path):
		case <-o.c.life.Done():
		}
	}
}
