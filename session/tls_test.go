package session_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// selfSigned returns a certificate for a host, and a pool that trusts it.
func selfSigned(t *testing.T, host string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// The VerifyConnection of a configuration that names no server gets the host of the connection string, also with
// InsecureSkipVerify, and the server gets the name, unless it is an address. The test breaks without ServerName in
// dialServer.
func TestTLSNamesTheServer(t *testing.T) {
	cert, _ := selfSigned(t, "localhost")
	for host, asked := range map[string]string{"localhost": "localhost", "127.0.0.1": "", "[::1]": ""} {
		srv := zksynctest.Start(t)
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served, names := make(chan error, 1), make(chan string, 100)
		secure := tls.NewListener(tcp, &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			names <- hello.ServerName
			return &cert, nil
		}})
		go func() { served <- srv.Serve(secure) }()
		dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, tcp.Addr().String())
		}
		verified := make(chan string, 100)
		cfg := &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(cs tls.ConnectionState) error {
			verified <- cs.ServerName
			return nil
		}}
		m, err := session.Connect(timeoutContext(t, 10*time.Second), host, session.WithTLS(cfg), session.WithDialer(dial))
		if err != nil {
			t.Fatal(err)
		}
		if got := <-verified; got != asked {
			t.Errorf("%s: VerifyConnection got the name %q, want %q", host, got, asked)
		}
		if got := <-names; got != asked {
			t.Errorf("%s: the server got the name %q, want %q", host, got, asked)
		}
		m.Close()
		srv.Close()
		<-served
	}
}

// WithTLS verifies the host of the connection string unless the configuration names another host, and works with
// WithDialer. A certificate that the client does not accept ends Connect, with the reason. Breaks if mistakeOfTLS
// takes such a certificate for a mistake that does not last.
func TestTLS(t *testing.T) {
	srv := zksynctest.Start(t)
	cert, pool := selfSigned(t, "zk.example.test")
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- srv.Serve(tls.NewListener(tcp, &tls.Config{Certificates: []tls.Certificate{cert}})) }()
	defer func() {
		srv.Close()
		if err := <-served; err != nil && !errors.Is(err, zkserver.ErrNotServing) {
			t.Error(err)
		}
	}()
	// The client verifies the name in the connection string.
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, tcp.Addr().String())
	}
	tryTLS := func(servers string, cfg *tls.Config, patience time.Duration) (*session.Manager, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return session.Connect(ctx, servers, session.WithTLS(cfg), session.WithDialer(dial), session.WithTimeout(6*time.Second))
	}
	for name, test := range map[string]struct {
		servers string
		cfg     *tls.Config
		fails   string
	}{
		"name of the server": {"zk.example.test", &tls.Config{RootCAs: pool}, ""},
		"name of the config": {"127.0.0.1", &tls.Config{RootCAs: pool, ServerName: "zk.example.test"}, ""},
		"not verified":       {"127.0.0.1", &tls.Config{InsecureSkipVerify: true}, ""},
		"unknown authority":  {"zk.example.test", &tls.Config{RootCAs: x509.NewCertPool()}, "certificate signed by unknown authority"},
		"another server":     {"other.example.test", &tls.Config{RootCAs: pool}, "certificate is valid for zk.example.test"},
		"no common version":  {"zk.example.test", &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS11, RootCAs: pool}, "tls"},
	} {
		patience := 10 * time.Second
		certificate := strings.Contains(test.fails, "certificate")
		if test.fails != "" && !certificate {
			patience = 300 * time.Millisecond
		}
		m, err := tryTLS(test.servers, test.cfg, patience)
		if test.fails != "" {
			if err == nil || !strings.Contains(err.Error(), "TLS") || !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s: error %v, want one that says %q", name, err, test.fails)
			}
			if certificate {
				mustBe(t, err, session.ErrMisconfigured) // before the end of ctx
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s := current(t, m)
		hold(t, s)
		for range 3 {
			srv.Disconnect(s.ID())
			if err := s.Sync(t.Context(), "/"); err != nil {
				t.Error(err)
			}
		}
		m.Close()
	}
	// A server without TLS.
	_, err = session.Connect(timeoutContext(t, 300*time.Millisecond), srv.Addr(), session.WithTLS(&tls.Config{RootCAs: pool}), session.WithTimeout(4*time.Second))
	if err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("error %v, want one about TLS", err)
	}
}

func timeoutContext(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// A session over TLS works on a real server and survives a reset of its connection.
func TestTLSOnARealServer(t *testing.T) {
	t.Parallel()
	e := zksynctest.RealZooKeeper(t, 1, zksynctest.RealTLS())
	m, err := session.Connect(timeoutContext(t, 30*time.Second), e.TLSAddr(1), session.WithTLS(e.TLS()))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := current(t, m)
	create(t, s, "/secret", 0)
	e.Reset(zksynctest.Client, 1)
	if _, _, err := s.Get(t.Context(), "/secret"); err != nil {
		t.Error(err)
	}
	// On a busy machine the handshake may not reach the certificate within the second.
	const cause = "certificate signed by unknown authority"
	for limit := time.Now().Add(30 * time.Second); ; {
		_, err = session.Connect(timeoutContext(t, time.Second), e.TLSAddr(1), session.WithTLS(&tls.Config{RootCAs: x509.NewCertPool()}))
		if err == nil || strings.Contains(err.Error(), cause) || time.Now().After(limit) {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), cause) {
		t.Errorf("error %v, want one that names the cause", err)
	}
}
