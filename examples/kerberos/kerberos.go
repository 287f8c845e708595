// Package kerberos authenticates clients of ZooKeeper by Kerberos: a mechanism for
// session.WithSASL, by gokrb5. It is a module of its own, so that its dependencies
// reach only those programs that want Kerberos. Import it, or copy its two files.
//
// # Set-up
//
// The servers need a principal, by custom zookeeper/HOST@REALM, a keytab for it, and a
// JAAS file that names both:
//
//	Server {
//	  com.sun.security.auth.module.Krb5LoginModule required
//	    useKeyTab=true storeKey=true useTicketCache=false
//	    keyTab="/etc/zookeeper/zookeeper.keytab"
//	    principal="zookeeper/zk1.example.com@EXAMPLE.COM";
//	};
//
// They find the file by the Java property java.security.auth.login.config, and need the
// line authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider in
// zoo.cfg. The servers need an encryption type of RFC 4121: AES.
//
// The client needs a principal of its own and, to run without a person, a keytab:
//
//	conf, err := config.Load("/etc/krb5.conf")
//	keys, err := keytab.Load("/etc/app/app.keytab")
//	login := client.NewWithKeytab("app", "EXAMPLE.COM", keys, conf)
//	m, err := session.Connect(ctx, servers, session.WithSASL(kerberos.New(login)))
//
// ACLs then name the client as sasl:app@EXAMPLE.COM, unless the servers are told to
// leave out the realm (kerberos.removeRealmFromPrincipal).
//
// # Guarantees
//
// Each connection authenticates both sides: a server that does not have the key of its
// principal is refused. Kerberos neither signs nor encrypts the bytes after that: use
// TLS. Times of client, KDC and servers may differ by five minutes.
package kerberos

import (
	"context"
	"fmt"
	"net"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/go-zksync/toolkit/session"
)

// A Mechanism is SASL's GSSAPI by Kerberos (RFC 4752), for session.WithSASL. Several
// goroutines may use it. Set the fields before its first use.
type Mechanism struct {
	// Service is the first part of the servers' principals, "zookeeper" if empty.
	Service string
	// Host is the second part of the servers' principals. If Host is empty, each
	// server has the name that the connection string gives it, so that list must have
	// names and not addresses.
	Host string

	name    types.PrincipalName
	realm   string
	tickets func(principal string) (messages.Ticket, types.EncryptionKey, error)
}

// New returns the mechanism for a client that gokrb5 logs in. The first connection logs
// in, and gokrb5 renews the tickets; call login.Destroy after Manager.Close.
func New(login *client.Client) *Mechanism {
	return &Mechanism{
		name: login.Credentials.CName(), realm: login.Credentials.Domain(),
		tickets: login.GetServiceTicket,
	}
}

// String names the client in errors about permissions.
func (m *Mechanism) String() string {
	return "sasl:" + m.name.PrincipalNameString() + "@" + m.realm
}

// Start asks the KDC for a ticket for the server, unless a ticket is in gokrb5's cache,
// and returns the token that carries the ticket. It returns when ctx ends.
func (m *Mechanism) Start(ctx context.Context, server string) (session.SASLExchange, []byte, error) {
	principal, err := m.principal(server)
	if err != nil {
		return nil, nil, err
	}
	type answer struct {
		ticket messages.Ticket
		key    types.EncryptionKey
		err    error
	}
	// gokrb5 knows no contexts: it ends by its own timeouts.
	answered := make(chan answer, 1)
	go func() {
		var a answer
		a.ticket, a.key, a.err = m.tickets(principal)
		answered <- a
	}()
	var a answer
	select {
	case a = <-answered:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("kerberos: no ticket for %s yet: %w", principal, context.Cause(ctx))
	}
	if a.err != nil {
		return nil, nil, fmt.Errorf("kerberos: ticket for %s: %w", principal, a.err)
	}
	e, token, err := initiate(m.name, m.realm, a.ticket, a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("kerberos: %w", err)
	}
	return e, token, nil
}

// principal returns the principal of a server, without its realm: gokrb5 finds the
// realm of a host in krb5.conf.
func (m *Mechanism) principal(server string) (string, error) {
	service, host := m.Service, m.Host
	if service == "" {
		service = "zookeeper"
	}
	if host == "" {
		var err error
		if host, _, err = net.SplitHostPort(server); err != nil {
			return "", fmt.Errorf("kerberos: server %q, want one as \"zk1.example.com:2181\": %w", server, err)
		}
		if net.ParseIP(host) != nil {
			return "", fmt.Errorf("kerberos: server %q is an address, but a principal needs a name: give names in the connection string, or set Mechanism.Host", server)
		}
	}
	return service + "/" + host, nil
}
