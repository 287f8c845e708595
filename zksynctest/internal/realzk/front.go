package realzk

import (
	"errors"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/internal/proxy"
)

// Front is a set of links through which some clients reach the servers. Breaking a link does not
// affect the clients of another Front.
type Front struct {
	cluster *Cluster
	plain   []*proxy.Link
	secure  []*proxy.Link // empty without TLS
}

// NewFront opens links to every server.
func (c *Cluster) NewFront() (*Front, error) {
	f := &Front{cluster: c}
	// Known to the cluster before it opens, so that a server that moves to
	// other ports meanwhile leaves no link behind.
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers {
		link, err := proxy.Listen(s.addr())
		if err != nil {
			return nil, errors.Join(err, f.closeLinks())
		}
		f.plain = append(f.plain, link)
		if !c.config.TLS {
			continue
		}
		link, err = proxy.Listen(s.secureAddr())
		if err != nil {
			return nil, errors.Join(err, f.closeLinks())
		}
		f.secure = append(f.secure, link)
	}
	c.fronts[f] = struct{}{}
	return f, nil
}

// Close closes the links and waits for their goroutines.
func (f *Front) Close() error {
	f.cluster.mu.Lock()
	delete(f.cluster.fronts, f)
	f.cluster.mu.Unlock()
	return f.closeLinks()
}

func (f *Front) closeLinks() error {
	return each(append(append([]*proxy.Link(nil), f.plain...), f.secure...), (*proxy.Link).Close)
}

func (f *Front) retarget(s *server, ports serverPorts) error {
	err := f.plain[s.id-1].SetTarget(loopback(ports.client))
	if len(f.secure) > 0 {
		err = errors.Join(err, f.secure[s.id-1].SetTarget(loopback(ports.secure)))
	}
	return err
}

// links returns the links to server i.
func (f *Front) links(i int) ([]*proxy.Link, error) {
	if _, err := f.cluster.server(i); err != nil {
		return nil, err
	}
	links := []*proxy.Link{f.plain[i-1]}
	if len(f.secure) > 0 {
		links = append(links, f.secure[i-1])
	}
	return links, nil
}

// Addr returns the address at which clients reach server i.
func (f *Front) Addr(i int) (string, error) {
	links, err := f.links(i)
	if err != nil {
		return "", err
	}
	return links[0].Addr(), nil
}

// TLSAddr returns the address at which clients reach the secure port of server i.
func (f *Front) TLSAddr(i int) (string, error) {
	links, err := f.links(i)
	if err != nil {
		return "", err
	}
	if len(links) < 2 {
		return "", errors.New("the servers have no secure port: ask for one with RealTLS")
	}
	return links[1].Addr(), nil
}

// Cut drops all bytes between server i and its clients.
func (f *Front) Cut(i int) error { return f.each(i, (*proxy.Link).Cut) }

// Heal ends a Cut.
func (f *Front) Heal(i int) error { return f.each(i, (*proxy.Link).Heal) }

// Reset resets the connections between server i and its clients.
func (f *Front) Reset(i int) error { return f.each(i, (*proxy.Link).Reset) }

// LastSent returns the time at which a client last sent server i bytes over this Front, or the zero
// time.
func (f *Front) LastSent(i int) (time.Time, error) {
	links, err := f.links(i)
	if err != nil {
		return time.Time{}, err
	}
	var last time.Time
	for _, link := range links {
		if at, _ := link.Passed(); at.After(last) {
			last = at
		}
	}
	return last, nil
}

// Delay delays all bytes between server i and its clients, each way.
func (f *Front) Delay(i int, d time.Duration) error {
	return f.each(i, func(l *proxy.Link) error {
		l.SetDelay(d)
		return nil
	})
}

func (f *Front) each(i int, fn func(*proxy.Link) error) error {
	links, err := f.links(i)
	if err != nil {
		return err
	}
	return each(links, fn)
}
