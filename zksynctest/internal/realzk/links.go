package realzk

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/internal/proxy"
)

// canServe reports whether a server may be expected to serve: a majority is
// meant to run, and no link between those is cut. Where links are cut that
// depends on who leads, so nothing is expected.
func (c *Cluster) canServe(s *server) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	active := 0
	for _, a := range c.servers {
		if a != s && !a.active() {
			continue
		}
		active++
		for _, b := range c.servers {
			if a.id < b.id && (b == s || b.active()) && c.cut[pair{a.id, b.id}] {
				return false
			}
		}
	}
	return active > len(c.servers)/2
}

// retarget points every link to s at its new ports.
func (c *Cluster) retarget(s *server, ports serverPorts) error {
	var errs []error
	for key, links := range c.peers {
		if key.to == s.id {
			errs = append(errs,
				links.quorum.SetTarget(loopback(ports.quorum)),
				links.election.SetTarget(loopback(ports.election)))
		}
	}
	c.mu.Lock()
	fronts := make([]*Front, 0, len(c.fronts))
	for front := range c.fronts {
		fronts = append(fronts, front)
	}
	c.mu.Unlock()
	for _, front := range fronts {
		errs = append(errs, front.retarget(s, ports))
	}
	return errors.Join(errs...)
}

// between returns the links that join two servers, both ways.
func (c *Cluster) between(i, j int) ([]*proxy.Link, error) {
	for _, id := range []int{i, j} {
		if _, err := c.server(id); err != nil {
			return nil, err
		}
	}
	if i == j {
		return nil, fmt.Errorf("no link leads from server %d to itself", i)
	}
	return append(c.peers[pair{i, j}].list(), c.peers[pair{j, i}].list()...), nil
}

func unordered(i, j int) pair { return pair{min(i, j), max(i, j)} }

// Cut swallows all bytes between two servers.
func (c *Cluster) Cut(i, j int) error {
	links, err := c.between(i, j)
	if err != nil {
		return err
	}
	c.setCut(i, j, true)
	return each(links, (*proxy.Link).Cut)
}

// Heal ends a Cut.
func (c *Cluster) Heal(i, j int) error {
	links, err := c.between(i, j)
	if err != nil {
		return err
	}
	c.setCut(i, j, false)
	return each(links, (*proxy.Link).Heal)
}

func (c *Cluster) setCut(i, j int, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut[unordered(i, j)] = cut
}

// HealAll heals every link between servers.
func (c *Cluster) HealAll() error {
	var errs []error
	for i := 1; i <= len(c.servers); i++ {
		for j := i + 1; j <= len(c.servers); j++ {
			errs = append(errs, c.Heal(i, j))
		}
	}
	return errors.Join(errs...)
}

// Reset resets the connections between two servers.
func (c *Cluster) Reset(i, j int) error {
	links, err := c.between(i, j)
	if err != nil {
		return err
	}
	return each(links, (*proxy.Link).Reset)
}

// ResetEnd resets server i's ends of the connections between two servers.
// Server j learns of it unless the link is cut.
func (c *Cluster) ResetEnd(i, j int) error {
	if _, err := c.between(i, j); err != nil {
		return err
	}
	return errors.Join(
		each(c.peers[pair{i, j}].list(), (*proxy.Link).ResetDialers),
		each(c.peers[pair{j, i}].list(), (*proxy.Link).ResetTargets))
}

// LastSent returns when server i last sent server j anything but election
// messages, and the zero time if it never did.
func (c *Cluster) LastSent(i, j int) (time.Time, error) {
	if _, err := c.between(i, j); err != nil {
		return time.Time{}, err
	}
	dialed, _ := c.peers[pair{i, j}].quorum.Passed()
	_, accepted := c.peers[pair{j, i}].quorum.Passed()
	if accepted.After(dialed) {
		return accepted, nil
	}
	return dialed, nil
}

// Delay delays all bytes between two servers, each way.
func (c *Cluster) Delay(i, j int, d time.Duration) error {
	links, err := c.between(i, j)
	if err != nil {
		return err
	}
	for _, link := range links {
		link.SetDelay(d)
	}
	return nil
}

func each(links []*proxy.Link, fn func(*proxy.Link) error) error {
	var errs []error
	for _, link := range links {
		errs = append(errs, fn(link))
	}
	return errors.Join(errs...)
}
