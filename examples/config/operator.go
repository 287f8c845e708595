package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// pace is the time that the operator gives the service to react to one step.
const pace = 400 * time.Millisecond

// An operator plays everything around the service: its configuration, the other
// members of its group, and faults.
type operator struct {
	ctx     context.Context
	srv     *zkserver.Server
	service *session.Manager
	out     *printer
}

// step announces something, does it, and lets the service react.
func (o *operator) step(what string, do func() error) error {
	o.out.print("operator", "%s", what)
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	select {
	case <-time.After(pace):
		return nil
	case <-o.ctx.Done():
		return context.Cause(o.ctx)
	}
}

func (o *operator) day() error {
	hosts, err := session.Connect(o.ctx, "127.0.0.1:2181", session.WithDialer(o.srv.Dial))
	if err != nil {
		return err
	}
	defer hosts.Close()
	var second *session.Ephemeral
	config := path + "/config"
	steps := []struct {
		what string
		do   func() error
	}{
		{"looks at a service without a configuration", func() error { return nil }},
		{"writes the first configuration", func() error {
			if err := o.srv.Create(path, nil); err != nil {
				return err
			}
			return o.srv.Create(config, []byte(`{"color":"blue"}`))
		}},
		{"starts host-1 and host-2", func() (err error) {
			if _, err = hosts.Ephemeral(o.ctx, path+"/members/host-1", nil); err == nil {
				second, err = hosts.Ephemeral(o.ctx, path+"/members/host-2", nil)
			}
			return err
		}},
		{"changes the configuration", func() error { return o.srv.Set(config, []byte(`{"color":"green"}`)) }},
		{"makes a mistake in the configuration", func() error { return o.srv.Set(config, []byte(`{"color":`)) }},
		{"breaks the service's connection, and nothing else", func() error { return o.of(o.service, o.srv.Disconnect) }},
		{"changes the configuration while the service is cut off", func() error {
			o.srv.HangHandshake(true)
			if err := o.of(o.service, o.srv.Disconnect); err != nil {
				return err
			}
			if err := o.srv.Set(config, []byte(`{"color":"red"}`)); err != nil {
				return err
			}
			time.AfterFunc(pace/2, func() { o.srv.HangHandshake(false) })
			return nil
		}},
		{"expires the service's session", func() error { return o.of(o.service, o.srv.ExpireSession) }},
		{"expires the hosts' session: they come back by themselves", func() error { return o.of(hosts, o.srv.ExpireSession) }},
		{"stops host-2", func() error { return second.Close() }},
		{"stops host-1 as well", hosts.Close},
		{"deletes the configuration", func() error { return o.srv.Delete(config) }},
	}
	for _, s := range steps {
		if err := o.step(s.what, s.do); err != nil {
			return err
		}
	}
	return nil
}

// of does something to the session of a Manager.
func (o *operator) of(m *session.Manager, do func(id int64) error) error {
	s, err := m.Session(o.ctx)
	if err != nil {
		return err
	}
	return do(s.ID())
}
