package zksync

import (
	"context"
	"errors"

	"github.com/go-zksync/toolkit/session"
)

// under calls fn under a hold, which it releases when fn returns or panics. It
// returns the error of fn, joined with the error of the release, which says that the
// hold had been lost. Manager.Close waits for fn.
func under(held context.Context, s *session.Session, fn func(context.Context) error, release func() error) (err error) {
	defer func() {
		if failed := release(); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	done, err := s.Busy()
	if err != nil {
		return err
	}
	defer done()
	return fn(held)
}
