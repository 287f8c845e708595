package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// A job runs a task once for each slot of time. Which slot was run last stands
// in a znode, which the leader changes, with a check of its version, before it runs
// the next: so a slot is run at most once even if a leader that was paused does not
// know yet that another leads. A leader that dies between the two leaves its slot
// out; a task for which that is worse than running twice would do it in the other
// order.
type job struct {
	m     *session.Manager
	path  string
	every time.Duration
	task  func(slot int64)
}

// lead runs the task for as long as ctx lives.
func (j *job) lead(ctx context.Context) error {
	s, err := j.m.Session(ctx)
	if err != nil {
		return err
	}
	last, version, err := j.load(ctx, s)
	if err != nil {
		return err
	}
	for {
		slot := time.Now().UnixNano()/int64(j.every) + 1
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Until(time.Unix(0, slot*int64(j.every)))):
		}
		if slot <= last {
			continue
		}
		stat, err := s.Set(ctx, j.path, strconv.AppendInt(nil, slot, 10), version)
		if err != nil {
			return fmt.Errorf("claiming slot %d: %w", slot, err)
		}
		last, version = slot, stat.Version
		j.task(slot)
	}
}

// load reads the last slot, and begins with none.
func (j *job) load(ctx context.Context, s *session.Session) (last int64, version int32, err error) {
	for {
		data, stat, err := s.Get(ctx, j.path)
		if err == nil {
			last, err = strconv.ParseInt(string(data), 10, 64)
			return last, stat.Version, err
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return 0, 0, err
		}
		_, err = s.Create(ctx, j.path, []byte("0"), zk.FlagPersistent)
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return 0, 0, err
		}
	}
}
