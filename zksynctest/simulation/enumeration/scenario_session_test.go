package enumeration_test

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// orConnectionLost allows that the outcome of a request is unknown, which any break of
// the connection may cause.
func orConnectionLost(s *stage, err error) bool {
	return len(s.of.strikes) > 0 && errors.Is(err, session.ErrConnectionLost)
}

var sessionScenarios = []*scenario{
	// A Manager is opened, used and closed.
	{name: "connect", clients: 1, pairs: true, connects: true, run: func(s *stage) {
		c := s.clients[0]
		c.connect()
		_ = c.do("Do", func(ctx context.Context) error {
			return c.manager().Do(ctx, func(ctx context.Context, s *session.Session) error {
				_, _, err := s.Exists(ctx, "/a")
				return err
			})
		})
		c.mu.Lock()
		c.closing = true
		m := c.m
		c.mu.Unlock()
		m.Close()
	}},
	// A znode is created, changed, read and deleted.
	{name: "operations", clients: 1, pairs: true, run: func(s *stage) {
		c := s.clients[0]
		const path = "/data"
		// A create that was cancelled may still be in progress.
		s.probe("the znode", func(ctx context.Context, c *client) error {
			return c.manager().Do(ctx, func(ctx context.Context, s *session.Session) error {
				err := s.Delete(ctx, path, -1)
				if errors.Is(err, zk.ErrNoNode) {
					err = nil
				}
				return err
			})
		})
		do := func(what string, f func(ctx context.Context, s *session.Session) error, also ...allowance) error {
			return c.do(what, func(ctx context.Context) error { return c.manager().Do(ctx, f) }, also...)
		}
		created := do("create", func(ctx context.Context, s *session.Session) error {
			_, err := s.Create(ctx, path, []byte("0"), zk.FlagPersistent)
			if errors.Is(err, zk.ErrNodeExists) {
				err = nil
			}
			return err
		})
		if created != nil {
			return
		}
		read := do("get", func(ctx context.Context, s *session.Session) error {
			_, _, err := s.Get(ctx, path)
			return err
		})
		changed := do("set", func(ctx context.Context, s *session.Session) error {
			_, err := s.Set(ctx, path, []byte("1"), 0)
			if errors.Is(err, zk.ErrBadVersion) {
				err = nil // Do has repeated the write
			}
			return err
		})
		if read == nil && changed == nil {
			var data []byte
			if do("get", func(ctx context.Context, s *session.Session) (err error) {
				data, _, err = s.Get(ctx, path)
				return err
			}) == nil && string(data) != "1" {
				s.fail("read %q after %q was written", data, "1")
			}
		}
		_ = do("delete", func(ctx context.Context, s *session.Session) error {
			err := s.Delete(ctx, path, -1)
			if errors.Is(err, zk.ErrNoNode) {
				err = nil
			}
			return err
		})
	}},
	// A protected create is resolved after any loss of its answer, and the znode is discarded.
	{name: "protected", clients: 1, pairs: true, run: func(s *stage) {
		c := s.clients[0]
		s.operator(func() error { return s.server.Create("/p", nil) })
		var path string
		var by *session.Session
		err := c.do("CreateProtected", func(ctx context.Context) (err error) {
			if by, err = c.manager().Session(ctx); err == nil {
				path, err = by.CreateProtected(ctx, "/p/n-", nil, zk.FlagEphemeral|zk.FlagSequence)
			}
			return err
		}, orLost)
		if n := s.count("/p"); err == nil && !s.mayLose() && (n > 1 || n == 0 && s.harm()&removes == 0) {
			s.fail("%d znodes are there after CreateProtected", n)
		}
		if err == nil {
			<-by.Discard(path)
		}
	}},
	// A watch fires although the connection breaks around the change.
	{name: "watch-rearm", clients: 1, pairs: true, run: func(s *stage) {
		c := s.clients[0]
		s.operator(func() error { return s.server.Create("/w", []byte("0")) })
		changed := false
		for seen := false; !seen && !c.gone() && !s.failed(); {
			_ = c.do("GetW", func(ctx context.Context) error {
				by, err := c.manager().Session(ctx)
				if err != nil {
					return err
				}
				data, _, events, err := by.GetW(ctx, "/w")
				if errors.Is(err, zk.ErrNoNode) {
					c.sleep(soon) // the server was cut off before the znode was created
					return nil
				}
				if err != nil {
					return err
				}
				if string(data) == "1" {
					seen = true
					return nil
				}
				if !changed {
					changed = true
					go func() {
						s.net.Disconnect(0)
						s.pause(3 * latency) // the new connection is in progress
						s.operator(func() error { return s.server.Set("/w", []byte("1")) })
					}()
				}
				select {
				case ev := <-events:
					return ev.Err
				case <-ctx.Done():
					return errors.Join(ctx.Err(), context.Cause(ctx))
				}
			}, orLost, orConnectionLost)
		}
	}},
}

// count returns the number of children of a znode.
func (s *stage) count(path string) int {
	names, _ := s.server.Children(path)
	return len(names)
}
