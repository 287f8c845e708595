package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// serversEnv names the ensemble if -servers does not.
const serversEnv = "ZOOKEEPER_SERVERS"

const defaultServers = "127.0.0.1:2181"

// An ensemble is how to connect to the servers.
type ensemble struct {
	servers  string
	timeout  time.Duration
	connect  time.Duration
	authFile string
	tls      bool
	ca       string
	cert     string
	key      string
}

func (e *ensemble) flags(fs *flag.FlagSet) {
	fs.StringVar(&e.servers, "servers", cmp.Or(os.Getenv(serversEnv), defaultServers), "the `servers` as host:port,...; a chroot may follow")
	durationVar(fs, &e.timeout, "timeout", 10*time.Second, "the session timeout, a `DURATION`: how long a lock outlives a machine that died")
	durationVar(fs, &e.connect, "connect", 10*time.Second, "try for this `DURATION` to reach a server; ls and who also read for this long at most")
	fs.StringVar(&e.authFile, "auth-file", "", "a `file` of credentials, one scheme:credential a line, as digest:name:password or sasl:name:password")
	fs.BoolVar(&e.tls, "tls", false, "use TLS, with the certificate authorities of this machine")
	fs.StringVar(&e.ca, "ca", "", "a PEM `file` of certificate authorities; implies -tls")
	fs.StringVar(&e.cert, "cert", "", "a PEM `file` of our certificate; implies -tls")
	fs.StringVar(&e.key, "key", "", "a PEM `file` of the key of -cert")
}

func (e *ensemble) check() error {
	switch {
	case e.connect <= 0:
		return fmt.Errorf("-connect %v is not positive", e.connect)
	case (e.cert == "") != (e.key == ""):
		return errors.New("give both -cert and -key or neither")
	}
	return nil
}

// open connects to the ensemble, within -connect and within limit if that is positive.
func (e *ensemble) open(ctx context.Context, limit time.Duration) (*session.Manager, error) {
	opts := []session.Option{session.WithTimeout(e.timeout)}
	auth, err := e.auth()
	if err != nil {
		return nil, usageError{err}
	}
	cfg, err := e.tlsConfig()
	if err != nil {
		return nil, usageError{err}
	}
	if opts = append(opts, auth...); cfg != nil {
		opts = append(opts, session.WithTLS(cfg))
	}
	bound := e.connect
	if limit > 0 {
		bound = min(bound, limit)
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	return session.Connect(ctx, e.servers, opts...)
}

// auth reads the credentials. They are in a file, because other users of the machine can
// read the arguments of a process.
func (e *ensemble) auth() (opts []session.Option, err error) {
	if e.authFile == "" {
		return nil, nil
	}
	f, err := os.Open(e.authFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimLeft(lines.Text(), " \t") // spaces at the end belong to the password
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		scheme, credential, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("%s:%d: want scheme:credential", e.authFile, n)
		}
		if scheme == "sasl" {
			user, password, ok := strings.Cut(credential, ":")
			if !ok || user == "" {
				return nil, fmt.Errorf("%s:%d: want sasl:name:password", e.authFile, n)
			}
			opts = append(opts, session.WithSASL(session.DigestMD5(user, password)))
			continue
		}
		opts = append(opts, session.WithAuth(scheme, []byte(credential)))
	}
	return opts, lines.Err()
}

func (e *ensemble) tlsConfig() (*tls.Config, error) {
	if !e.tls && e.ca == "" && e.cert == "" {
		return nil, nil
	}
	cfg := &tls.Config{}
	if e.ca != "" {
		pem, err := os.ReadFile(e.ca)
		if err != nil {
			return nil, err
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificates", e.ca)
		}
	}
	if e.cert != "" {
		pair, err := tls.LoadX509KeyPair(e.cert, e.key)
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// A usageError is a mistake in the arguments that is found late.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// complain prints an error, each line of it.
func (p *program) complain(err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(p.stderr, "zklock: %s\n", printable(inOptions.Replace(strings.TrimSuffix(line, "\n"))))
	}
}

// failed prints an error and returns the exit status for it.
func (p *program) failed(ctx context.Context, err error) int {
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	p.complain(err)
	var wrong usageError
	if errors.As(err, &wrong) || errors.Is(err, session.ErrInvalidPath) || errors.Is(err, session.ErrInvalidOption) || errors.Is(err, session.ErrInvalidServers) {
		return statusUsage
	}
	return statusEnsemble
}
