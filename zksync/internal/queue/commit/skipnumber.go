package commit

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// SkipNumber uses up the next number of a directory, which another client has given to a message
// of its own: the directory then gives the number behind it. It returns false if the counter of the
// directory is spent. FreeNumber, in contrast, waits for the message, which needs consumers with room.
func SkipNumber(ctx context.Context, s *session.Session, dir string) (bool, error) {
	ok, stat, err := s.Exists(ctx, dir)
	if err != nil || !ok {
		return err == nil, err // the next attempt creates the directory
	}
	if _, spent := nextNumber(stat); spent {
		return false, nil
	}
	// A server counts every creation. No client sees the znode, since one transaction deletes it.
	path := znode.Join(dir, "zksync-skip")
	_, err = s.Multi(ctx, &zk.CreateRequest{Path: path}, &zk.DeleteRequest{Path: path, Version: -1})
	return err == nil, err
}
