package mistakes

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A trouble is one row of the table.
type trouble struct {
	name   string
	says   string // text that the first line or the error must contain
	action string
	act    func(k *kit) error
}

var troubles = []trouble{
	{"nothing listens", "connection refused", "start the servers; check the port", func(k *kit) error {
		return k.connect(k.closed())
	}},
	{"a name that does not resolve", "no such host", "correct the name; check DNS", func(k *kit) error {
		return k.connect("zk.invalid:2181", session.WithDialer(func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "zk.invalid", IsNotFound: true}
		}))
	}},
	{"a firewall drops packets", "deadline exceeded", "open the port 2181", func(k *kit) error {
		return k.connect("127.0.0.1:2181", session.WithDialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
	}},
	{"a server that accepts and is silent", "handshake", "look at the server: it may be paused or overloaded", func(k *kit) error {
		return k.connect(k.listen(func(c net.Conn) { io.Copy(io.Discard, c) }))
	}},
	{"an HTTP server on the port", "HTTP server or proxy", "correct the port", func(k *kit) error {
		return k.connect(k.listen(func(c net.Conn) {
			if line, _ := bufio.NewReader(c).ReadString('\n'); line != "" {
				io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			}
		}))
	}},
	{"another service on the port", "another service", "correct the port", func(k *kit) error {
		return k.connect(k.listen(func(c net.Conn) { io.WriteString(c, "SSH-2.0-OpenSSH_9.6\r\n"); io.Copy(io.Discard, c) }))
	}},
	{"TLS to the plain port", "does not speak TLS", "use the secureClientPort, or no TLS", func(k *kit) error {
		return k.connect(k.server(zkserver.Config{}).Addr(), session.WithTLS(&tls.Config{}))
	}},
	{"no TLS to the TLS port", "expects TLS", "use WithTLS", func(k *kit) error {
		address, _ := k.secure(time.Now().Add(time.Hour), tls.NoClientCert)
		return k.connect(address)
	}},
	{"no TLS to the TLS port of ZooKeeper", "expects TLS", "use WithTLS", func(k *kit) error {
		address := zksynctest.RealZooKeeper(k, 1, zksynctest.RealTLS()).TLSAddr(1)
		// The first handshake of a Java process loads classes for a second or more on a busy machine.
		warm := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
		if c, err := warm.DialContext(k.Context(), "tcp", address); err == nil {
			c.Close()
		}
		return k.connect(address)
	}},
	{"TLS to the plain port of ZooKeeper", "does not speak TLS", "use the secureClientPort, or no TLS", func(k *kit) error {
		return k.connect(zksynctest.RealShared(k).Servers(), session.WithTLS(&tls.Config{}))
	}},
	{"an expired certificate", "renew the certificate", "renew the certificate", func(k *kit) error {
		address, pool := k.secure(time.Now().Add(-time.Hour), tls.NoClientCert)
		return k.connect(address, session.WithTLS(&tls.Config{RootCAs: pool}))
	}},
	{"a certificate for another name", "names another host", "set ServerName, or use the name", func(k *kit) error {
		address, pool := k.secure(time.Now().Add(time.Hour), tls.NoClientCert)
		return k.connect(address, session.WithTLS(&tls.Config{RootCAs: pool, ServerName: "zk1.example.com"}))
	}},
	{"an unknown authority", "does not trust the authority", "add the authority to RootCAs", func(k *kit) error {
		address, _ := k.secure(time.Now().Add(time.Hour), tls.NoClientCert)
		return k.connect(address, session.WithTLS(&tls.Config{RootCAs: x509.NewCertPool()}))
	}},
	{"no client certificate", "check the client's certificate", "set Certificates in WithTLS", func(k *kit) error {
		address, pool := k.secure(time.Now().Add(time.Hour), tls.RequireAnyClientCert)
		return k.connect(address, session.WithTLS(&tls.Config{RootCAs: pool}))
	}},
	{"a mistyped connection string", "port", "correct it", func(k *kit) error {
		return k.connect("zk1:http")
	}},
	{"a chroot that does not exist", "the chroot does not exist: /typo", "correct it, or use WithCreateChroot", func(k *kit) error {
		return k.connect(k.server(zkserver.Config{}).Addr() + "/typo")
	}},
	{"a denied chroot", "/app on the servers (getAcl /app) does not give CREATE", "change the ACL of the chroot", func(k *kit) error {
		srv := k.server(zkserver.Config{})
		deny(k, srv, "/app", zk.PermRead)
		m := k.manager(srv.Addr() + "/app")
		k.begin()
		return zksync.NewMutex(m, "/locks/orders").Lock(k.ctx)
	}},
	{"a denied parent", "/locks on the servers (getAcl /locks) does not give CREATE", "change the ACL of the parent", func(k *kit) error {
		srv := k.server(zkserver.Config{})
		deny(k, srv, "/locks", zk.PermRead)
		m := k.manager(srv.Addr())
		k.begin()
		return zksync.NewMutex(m, "/locks/orders").Lock(k.ctx)
	}},
	{"a wrong digest password", "with another password digest:app is another identity", "correct the password: the server accepts any, as another identity", func(k *kit) error {
		srv := k.server(zkserver.Config{})
		owner := k.session(k.manager(srv.Addr(), session.WithAuth("digest", []byte("app:secret"))))
		if _, err := owner.Create(k.Context(), "/config", nil, 0); err != nil {
			k.Fatal(err)
		}
		s := k.session(k.manager(srv.Addr(), session.WithAuth("digest", []byte("app:guess"))))
		k.begin()
		_, _, err := s.Get(k.ctx, "/config")
		return err
	}},
	{"an auth scheme that the server lacks", "refused the credentials", "correct the scheme of WithAuth", func(k *kit) error {
		return k.connect(k.server(zkserver.Config{}).Addr(), session.WithAuth("kerberos", []byte("x")))
	}},
	{"a wrong SASL password", "refused the credentials", "correct the password", func(k *kit) error {
		srv := k.server(zkserver.Config{SASLUsers: map[string]string{"app": "secret"}})
		return k.connect(srv.Addr(), session.WithSASL(session.DigestMD5("app", "guess")))
	}},
	{"no SASL where the server requires it", "WithSASL", "use WithSASL", func(k *kit) error {
		return k.connect(k.server(zkserver.Config{SASLUsers: map[string]string{}, RequireSASL: true}).Addr())
	}},
	{"SASL where the server has none", "offers no SASL", "give the servers a JAAS file", func(k *kit) error {
		return k.connect(k.server(zkserver.Config{}).Addr(), session.WithSASL(session.DigestMD5("app", "secret")))
	}},
	{"an ACL that needs credentials", "needs session.WithAuth", "use WithAuth or WithSASL", func(k *kit) error {
		s := k.session(k.manager(k.server(zkserver.Config{}).Addr(), session.WithACL(zk.AuthACL(zk.PermAll)...)))
		k.begin()
		_, err := s.Create(k.ctx, "/x", nil, 0)
		return err
	}},
	{"too many connections from one host", "maxClientCnxns", "close connections, or raise maxClientCnxns", func(k *kit) error {
		srv := k.server(zkserver.Config{MaxClientConns: 2})
		k.manager(srv.Addr())
		k.manager(srv.Addr())
		return k.connect(srv.Addr())
	}},
	{"too many connections, ZooKeeper", "maxClientCnxns", "close connections, or raise maxClientCnxns", func(k *kit) error {
		e := zksynctest.RealZooKeeper(k, 1, zksynctest.RealProperty("maxClientCnxns", "1"))
		k.manager(e.DirectAddr(1))
		return k.connect(e.DirectAddr(1))
	}},
	{"no quorum at the start", "quorum", "start the other servers", func(k *kit) error {
		e := zksynctest.RealZooKeeper(k, 3)
		e.Kill(2)
		e.Kill(3)
		return k.connect(e.DirectAddr(1))
	}},
	{"the quorum is lost later", "may have no quorum", "start the other servers", func(k *kit) error {
		e := zksynctest.RealZooKeeper(k, 3)
		m := k.manager(e.DirectAddr(1))
		e.Kill(2)
		e.Kill(3)
		k.begin()
		return zksync.NewMutex(m, "/locks/orders").Lock(k.ctx)
	}},
	{"a read-only server", "serves only readers", "start the other servers", func(k *kit) error {
		e := zksynctest.RealZooKeeper(k, 3, zksynctest.RealJVM("-Dreadonlymode.enabled=true"))
		e.Kill(2)
		e.Kill(3)
		k.await(e.DirectAddr(1), "read-only")
		return k.connect(e.DirectAddr(1))
	}},
	{"the only server stops", "connection refused", "start the server", func(k *kit) error {
		srv := k.server(zkserver.Config{})
		s := k.session(k.manager(srv.Addr()))
		srv.Stop()
		k.begin()
		_, _, err := s.Get(k.ctx, "/")
		return err
	}},
	{"a paused server", "did not answer", "look at the server: garbage collection, disk, SIGSTOP", func(k *kit) error {
		srv := k.server(zkserver.Config{})
		s := k.session(k.manager(srv.Addr(), session.WithTimeout(30*time.Second)))
		srv.Freeze()
		k.Cleanup(srv.Thaw)
		k.begin()
		_, _, err := s.Get(k.ctx, "/")
		return err
	}},
	{"a throttled request", "throttled", "reduce the load; look at the servers' latency", func(k *kit) error {
		srv := k.server(zkserver.Config{})
		s := k.session(k.manager(srv.Addr()))
		srv.Inject(zkserver.Fault{Op: zkserver.OpGetData, Do: zkserver.Error(-127), Times: -1})
		k.begin()
		_, _, err := s.Get(k.ctx, "/")
		return err
	}},
	{"a request that is too large", "jute.maxbuffer", "send less, or raise jute.maxbuffer and WithMaxRequest", func(k *kit) error {
		s := k.session(k.manager(k.server(zkserver.Config{}).Addr()))
		k.begin()
		_, err := s.Create(k.ctx, "/x", make([]byte, 2<<20), 0)
		return err
	}},
	{"a request above the limit of the servers", "jute.maxbuffer", "set WithMaxRequest to jute.maxbuffer", func(k *kit) error {
		s := k.session(k.manager(k.server(zkserver.Config{MaxFrame: 8192}).Addr()))
		_, err := s.Create(k.Context(), "/x", nil, 0)
		k.begin()
		if err == nil {
			_, err = s.Set(k.ctx, "/x", make([]byte, 9000), 0)
		}
		return err
	}},
	{"another client holds the lock", "held by", "wait; zklock who; zklock break", func(k *kit) error {
		srv := k.server(zkserver.Config{})
		locked(k, k.manager(srv.Addr()))
		m := k.manager(srv.Addr())
		k.begin()
		return zksync.NewMutex(m, "/locks/orders").Lock(k.ctx)
	}},
	{"this process holds the lock by another value", "not reentrant", "unlock first: a lock is not reentrant", func(k *kit) error {
		m := k.manager(k.server(zkserver.Config{}).Addr())
		locked(k, m)
		k.begin()
		return zksync.NewMutex(m, "/locks/orders").Lock(k.ctx)
	}},
	{"this process holds the lock by the same value", "not reentrant", "unlock first: a lock is not reentrant", func(k *kit) error {
		mu := locked(k, k.manager(k.server(zkserver.Config{}).Addr()))
		k.begin()
		return mu.Lock(k.ctx)
	}},
	{"a semaphore has no free units", "others hold 2 of 3", "wait; raise the size", func(k *kit) error {
		m := k.manager(k.server(zkserver.Config{}).Addr())
		if err := zksync.NewSemaphore(m, "/sem", 3).Acquire(k.Context(), 2); err != nil {
			k.Fatal(err)
		}
		k.begin()
		return zksync.NewSemaphore(m, "/sem", 3).Acquire(k.ctx, 2)
	}},
	{"a gate that nobody opens", "which was set at", "Barrier.Remove", func(k *kit) error {
		gate := zksync.NewBarrier(k.manager(k.server(zkserver.Config{}).Addr()), "/gate")
		if err := gate.Set(k.Context()); err != nil {
			k.Fatal(err)
		}
		k.begin()
		return gate.Wait(k.ctx)
	}},
}

// locked locks /locks/orders.
func locked(k *kit, m *session.Manager) *zksync.Mutex {
	mu := zksync.NewMutex(m, "/locks/orders")
	if err := mu.Lock(k.Context()); err != nil {
		k.Fatal(err)
	}
	return mu
}

// deny creates a znode on which strangers have only some permissions.
func deny(k *kit, srv *zksynctest.Server, path string, perms int32) {
	s := k.session(k.manager(srv.Addr(), session.WithAuth("digest", []byte("admin:secret"))))
	acl := append(zk.WorldACL(perms), zk.AuthACL(zk.PermAll)...)
	if _, err := s.Create(k.Context(), path, nil, 0, acl...); err != nil && !strings.Contains(err.Error(), "exists") {
		k.Fatal(err)
	}
}
