// Package kerberos authenticates clients of ZooKeeper by Kerberos, with gokrb5. Import the
// package, or copy its file. The README beside it describes servers and clients.
//
// Each connection authenticates both sides: a server that does not have the key of its
// principal is refused. Kerberos neither signs nor encrypts the bytes after that: use
// TLS. The clocks of client, KDC and servers may differ by five minutes.
package kerberos

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/spnego"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/go-zksync/toolkit/session"
)

// A Mechanism is SASL's GSSAPI by Kerberos (RFC 4752), for session.WithSASL. Several
// goroutines may use it. Set the fields before its first use.
type Mechanism struct {
	// Service is the first part of the servers' principals, "zookeeper" if empty.
	Service string
	// Host is the second part of the servers' principals. If Host is empty, each server
	// has its name in the connection string, which must then have names, not addresses.
	Host string

	login   *client.Client
	tickets func(principal string) (messages.Ticket, types.EncryptionKey, error)
}

// New returns the mechanism for a client that gokrb5 logs in. The first connection logs
// in, and gokrb5 renews the tickets; call login.Destroy after Manager.Close.
func New(login *client.Client) *Mechanism {
	return &Mechanism{login: login, tickets: login.GetServiceTicket}
}

// String names the client in errors about permissions.
func (m *Mechanism) String() string {
	return "sasl:" + m.login.Credentials.CName().PrincipalNameString() + "@" + m.login.Credentials.Domain()
}

// Start asks the KDC for a ticket for the server, unless a ticket is in gokrb5's cache,
// and returns the token that carries the ticket. It returns when ctx ends.
func (m *Mechanism) Start(ctx context.Context, server string) (session.SASLExchange, []byte, error) {
	var e *exchange
	var token []byte
	answered := make(chan error, 1)
	go func() { // gokrb5 has no contexts: the call ends by gokrb5's own timeouts, perhaps after Start
		var err error
		e, token, err = m.initiate(server)
		answered <- err
	}()
	select {
	case err := <-answered:
		return e, token, err
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("kerberos: no ticket for the server %s yet: %w", server, context.Cause(ctx))
	}
}

// initiate returns an exchange with a server and its first token.
func (m *Mechanism) initiate(server string) (*exchange, []byte, error) {
	host, _, err := net.SplitHostPort(server)
	switch {
	case m.Host != "":
		host = m.Host
	case err != nil:
		return nil, nil, fmt.Errorf("kerberos: server %q, want one as \"zk1.example.com:2181\": %w", server, err)
	case net.ParseIP(host) != nil:
		return nil, nil, fmt.Errorf("kerberos: server %q is an address, but a principal needs a name: give names in the connection string, or set Mechanism.Host", server)
	}
	principal := cmp.Or(m.Service, "zookeeper") + "/" + host // gokrb5 finds the realm of a host in krb5.conf
	ticket, key, err := m.tickets(principal)
	if err != nil {
		return nil, nil, fmt.Errorf("kerberos: ticket for %s: %w", principal, err)
	}
	request, err := spnego.NewKRB5TokenAPREQ(m.login, ticket, key,
		[]int{gssapi.ContextFlagMutual, gssapi.ContextFlagInteg}, []int{flags.APOptionMutualRequired})
	if err == nil { // the server's proof repeats the authenticator, which gokrb5 has only encrypted
		err = request.APReq.DecryptAuthenticator(key)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("kerberos: %w", err)
	}
	token, err := request.Marshal()
	return &exchange{key: key, sent: request.APReq.Authenticator}, token, err
}

const noLayer = 1 // the security layer that does not change the bytes after the exchange (RFC 4752, 3.3)

// An exchange is the authentication of one connection:
//
//	client                                server
//	AP-REQ: ticket, authenticator  ---->
//	                               <----  AP-REP: proof that the server has its key
//	(empty)                        ---->
//	                               <----  Wrap: the security layers that it offers
//	Wrap: no layer                 ---->
type exchange struct {
	key    types.EncryptionKey // of the ticket; the server may choose another for Wrap
	sent   types.Authenticator
	proven bool // the server has answered the AP-REQ
	flags  byte // of the Wrap token of the client
}

// Next answers a token of the server.
func (e *exchange) Next(challenge []byte) (response []byte, done bool, err error) {
	if !e.proven {
		if err := e.verify(challenge); err != nil {
			return nil, false, fmt.Errorf("kerberos: the server has not proven its identity: %w", err)
		}
		e.proven = true
		return []byte{}, false, nil
	}
	offer, err := e.unwrap(challenge)
	if err != nil {
		return nil, false, fmt.Errorf("kerberos: the server's offer: %w", err)
	}
	if len(offer) != 4 || offer[0]&noLayer == 0 {
		return nil, false, fmt.Errorf("kerberos: the server offers the security layers %x, want one that includes %d: none", offer, noLayer)
	}
	// The answer chooses no layer, hence no size, and no other identity to act for.
	w := gssapi.WrapToken{Flags: e.flags, SndSeqNum: uint64(e.sent.SeqNumber), Payload: []byte{noLayer, 0, 0, 0}}
	if err := w.SetCheckSum(e.key, keyusage.GSSAPI_INITIATOR_SEAL); err != nil {
		return nil, false, fmt.Errorf("kerberos: %w", err)
	}
	w.EC = uint16(len(w.CheckSum))
	response, err = w.Marshal()
	return response, true, err
}

// verify checks that a token is the AP-REP to our AP-REQ.
func (e *exchange) verify(token []byte) error {
	var reply spnego.KRB5Token
	if err := reply.Unmarshal(token); err != nil {
		return err
	}
	switch {
	case reply.IsKRBError():
		return reply.KRBError
	case !reply.IsAPRep():
		return errors.New("a token that is no AP-REP")
	}
	kind, err := crypto.GetEtype(e.key.KeyType)
	if err != nil {
		return err
	}
	// DecryptEncPart panics if the confounder and the checksum are not there.
	if n, least := len(reply.APRep.EncPart.Cipher), kind.GetConfounderByteSize()+kind.GetHMACBitLength()/8; n < least {
		return fmt.Errorf("an AP-REP with a proof of %d bytes, want at least %d", n, least)
	}
	var proof messages.EncAPRepPart
	b, err := crypto.DecryptEncPart(reply.APRep.EncPart, e.key, keyusage.AP_REP_ENCPART)
	if err == nil {
		err = proof.Unmarshal(b)
	}
	if err != nil {
		return err
	}
	if !proof.CTime.Equal(e.sent.CTime) || proof.Cusec != e.sent.Cusec {
		return errors.New("an AP-REP to another AP-REQ")
	}
	if len(proof.Subkey.KeyValue) > 0 {
		e.key, e.flags = proof.Subkey, gssapi.MICTokenFlagAcceptorSubkey
	}
	return nil
}

// unwrap returns the content of a signed token of the server.
func (e *exchange) unwrap(token []byte) ([]byte, error) {
	if len(token) > gssapi.HdrLen { // the rest may be rotated to the right (RFC 4121, 4.2.5)
		rest := token[gssapi.HdrLen:]
		n := int(binary.BigEndian.Uint16(token[6:8])) % len(rest)
		token = slices.Concat(token[:gssapi.HdrLen], rest[n:], rest[:n])
	}
	var w gssapi.WrapToken
	if err := w.Unmarshal(token, true); err != nil {
		return nil, err
	}
	if w.Flags&gssapi.MICTokenFlagSealed != 0 {
		return nil, errors.New("the token is encrypted, want one that is signed")
	}
	if ok, err := w.Verify(e.key, keyusage.GSSAPI_ACCEPTOR_SEAL); !ok {
		return nil, err
	}
	return w.Payload, nil
}
