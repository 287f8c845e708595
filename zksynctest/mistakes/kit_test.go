package mistakes

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A kit has the helpers of a case.
type kit struct {
	*testing.T
	ctx   context.Context // of the call that fails; ends after patience
	opts  []session.Option
	start time.Time
}

// begin starts the clock when the fault is in place.
func (k *kit) begin() {
	k.start = time.Now()
	ctx, cancel := context.WithTimeout(k.Context(), patience)
	k.Cleanup(cancel)
	k.ctx = ctx
}

// connect starts the clock, and connects with the options of the kit.
func (k *kit) connect(servers string, opts ...session.Option) error {
	k.begin()
	m, err := session.Connect(k.ctx, servers, append(k.opts, opts...)...)
	if err == nil {
		k.Cleanup(func() { m.Close() })
		return errors.New("connected")
	}
	return err
}

// manager returns a Manager with a working connection.
func (k *kit) manager(servers string, opts ...session.Option) *session.Manager {
	k.Helper()
	m, err := session.Connect(k.Context(), servers, append(k.opts, opts...)...)
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { m.Close() })
	return m
}

func (k *kit) session(m *session.Manager) *session.Session {
	k.Helper()
	s, err := m.Session(k.Context())
	if err != nil {
		k.Fatal(err)
	}
	return s
}

func (k *kit) server(cfg zkserver.Config) *zksynctest.Server {
	return zksynctest.Start(k, zksynctest.WithConfig(cfg))
}

// listen starts a service that handles each connection with serve.
func (k *kit) listen(serve func(net.Conn)) string {
	k.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// await waits until a server's answer to srvr contains a text.
func (k *kit) await(address, text string) {
	k.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); <-tick.C {
		if c, err := net.Dial("tcp", address); err == nil {
			_, _ = c.Write([]byte("srvr"))
			answer, _ := io.ReadAll(c)
			c.Close()
			if strings.Contains(string(answer), text) {
				return
			}
		}
	}
	k.Fatalf("%s does not become %s", address, text)
}

// closed returns an address at which nothing listens. The stopped server reserves it.
func (k *kit) closed() string {
	k.Helper()
	srv := k.server(zkserver.Config{})
	address := srv.Addr()
	srv.Stop()
	return address
}

// secure puts TLS in front of an embedded server, with a certificate for localhost that expires at
// until, and returns the address and a pool that trusts the certificate.
func (k *kit) secure(until time.Time, clients tls.ClientAuthType) (string, *x509.CertPool) {
	k.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		k.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		k.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		k.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	backend := k.server(zkserver.Config{}).Addr()
	cfg := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, ClientAuth: clients}
	address := k.listen(func(raw net.Conn) {
		c := tls.Server(raw, cfg)
		if c.Handshake() != nil {
			return
		}
		b, err := net.Dial("tcp", backend)
		if err != nil {
			return
		}
		defer b.Close()
		go func() { defer c.Close(); copyBytes(c, b) }()
		copyBytes(b, c)
	})
	_, port, _ := net.SplitHostPort(address)
	return "localhost:" + port, pool
}

func copyBytes(to, from net.Conn) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

// patience is the timeout of the calls in the cases: a little longer than the time limit of the
// first line.
const patience = 4500 * time.Millisecond

// An outcome is the first line and the error that a user sees in a case.
type outcome struct {
	first time.Duration // until the first line or the error
	line  string        // the first line; empty if the error came first
	err   error
}

// run runs a case.
func run(t *testing.T, c trouble) outcome {
	t.Helper()
	core, logs := observer.New(zapcore.WarnLevel)
	k := &kit{T: t, opts: []session.Option{session.WithLogger(zap.New(core)), session.WithTimeout(4 * time.Second)}}
	err := c.act(k)
	o := outcome{first: time.Since(k.start), err: err}
	for _, e := range logs.All() {
		if e.Time.Before(k.start) {
			continue
		}
		fields := e.ContextMap()
		o.line = e.Message
		for _, f := range e.Context { // in the order of the fields
			o.line += fmt.Sprintf(" %s=%v", f.Key, fields[f.Key])
		}
		o.first = min(o.first, e.Time.Sub(k.start))
		break
	}
	return o
}

// variable has the parts of texts that differ from run to run.
var variable = []struct {
	re *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "zk1:2181"},
	{regexp.MustCompile(`localhost:\d+`), "zk1:2181"},
	{regexp.MustCompile(`0x[0-9a-f]{6,}`), "0x1…"},
	{regexp.MustCompile(`_c_[0-9a-f-]{36}`), "_c_…"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.+Z-]+`), "…"},
	{regexp.MustCompile(`[a-z0-9-]+:\d{4,}\b`), "host:4711"},
	{regexp.MustCompile(`\b\d+(\.\d+)?m?s\b`), "…s"},
	{regexp.MustCompile(`\d+ attempts`), "… attempts"},
}

// stable replaces the variable parts of a text.
func stable(s string) string {
	for _, v := range variable {
		s = v.re.ReplaceAllStringFunc(s, func(m string) string {
			if strings.HasPrefix(m, "zk1:") {
				return m
			}
			return v.by
		})
	}
	return s
}
