package session

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// dialServer opens a connection to one server, and the one below TLS.
func dialServer(ctx context.Context, cfg *config, network, server string) (conn, raw net.Conn, err error) {
	raw, err = cfg.dial(ctx, network, server)
	if err != nil {
		return nil, nil, err
	}
	if raw == nil {
		return nil, nil, errors.New("the dialer returned neither a connection nor an error")
	}
	if cfg.tls == nil {
		return raw, raw, nil
	}
	secured := cfg.tls
	if secured.ServerName == "" && !secured.InsecureSkipVerify {
		host, _, err := net.SplitHostPort(server)
		if err != nil {
			raw.Close()
			return nil, nil, err
		}
		secured = secured.Clone()
		secured.ServerName = host
	}
	secure := tls.Client(raw, secured)
	if err := secure.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, nil, &tlsError{err}
	}
	return secure, raw, nil
}
