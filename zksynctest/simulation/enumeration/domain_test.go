package enumeration_test

import (
	"strings"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A domain is the part of the servers' tree that the clients see: everything below their chroot. The
// paths of its methods begin there, as the paths of the clients do.
type domain struct {
	*zkserver.Server
	without []zkserver.OpCode // operations that the servers do not know
	chroot  string
}

// at returns the path at the servers of a path of the clients.
func (d *domain) at(path string) string {
	if d.chroot != "" && path == "/" {
		return d.chroot
	}
	return d.chroot + path
}

func (d *domain) Create(path string, data []byte) error { return d.Server.Create(d.at(path), data) }

func (d *domain) Set(path string, data []byte) error { return d.Server.Set(d.at(path), data) }

func (d *domain) Delete(path string) error { return d.Server.Delete(d.at(path)) }

func (d *domain) Children(path string) ([]string, bool) { return d.Server.Children(d.at(path)) }

func (d *domain) Get(path string) ([]byte, bool) { return d.Server.Get(d.at(path)) }

func (d *domain) SetACL(path string, list []zkserver.ACL) error {
	return d.Server.SetACL(d.at(path), list)
}

func (d *domain) ACL(path string) ([]zkserver.ACL, bool) { return d.Server.ACL(d.at(path)) }

// Sessions returns the sessions, with the paths of the clients.
func (d *domain) Sessions() []zkserver.SessionInfo {
	all := d.Server.Sessions()
	for i := range all {
		for j, path := range all[i].Ephemerals {
			all[i].Ephemerals[j] = strings.TrimPrefix(path, d.chroot)
		}
	}
	return all
}
