package kerberos

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/spnego"
	"github.com/jcmturner/gokrb5/v8/types"
)

// tokenAPReq marks the token that carries a ticket (RFC 4121, 4.1).
var tokenAPReq = []byte{1, 0}

// Flags of a Wrap token (RFC 4121, 4.2.2).
const (
	sentByAcceptor byte = 1 << iota
	sealed
	acceptorSubkey
)

// noLayer is the security layer that does not change the bytes after the exchange
// (RFC 4752, 3.3).
const noLayer = 1

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
	subkey bool
}

// initiate returns an exchange and its first token.
func initiate(name types.PrincipalName, realm string, ticket messages.Ticket, key types.EncryptionKey) (*exchange, []byte, error) {
	auth, err := types.NewAuthenticator(realm, name)
	if err != nil {
		return nil, nil, err
	}
	auth.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: contextFlags(gssapi.ContextFlagMutual | gssapi.ContextFlagInteg)}
	request, err := messages.NewAPReq(ticket, key, auth)
	if err != nil {
		return nil, nil, err
	}
	types.SetFlag(&request.APOptions, flags.APOptionMutualRequired)
	body, err := request.Marshal()
	if err != nil {
		return nil, nil, err
	}
	token, err := asn1.Marshal(gssapi.OIDKRB5.OID())
	if err != nil {
		return nil, nil, err
	}
	token = append(append(token, tokenAPReq...), body...)
	return &exchange{key: key, sent: auth}, asn1tools.AddASNAppTag(token, 0), nil
}

// contextFlags is the checksum of an authenticator for GSSAPI (RFC 4121, 4.1.1),
// without channel bindings.
func contextFlags(wanted int) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 16)
	b = append(b, make([]byte, 16)...)
	return binary.LittleEndian.AppendUint32(b, uint32(wanted))
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
	// No layer, so no size; no other identity to act for.
	response, err = e.wrap([]byte{noLayer, 0, 0, 0})
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
	b, err := crypto.DecryptEncPart(reply.APRep.EncPart, e.key, keyusage.AP_REP_ENCPART)
	if err != nil {
		return err
	}
	var proof messages.EncAPRepPart
	if err := proof.Unmarshal(b); err != nil {
		return err
	}
	if !proof.CTime.Equal(e.sent.CTime.Truncate(time.Second)) || proof.Cusec != e.sent.Cusec {
		return errors.New("an AP-REP to another AP-REQ")
	}
	if len(proof.Subkey.KeyValue) > 0 {
		e.key, e.subkey = proof.Subkey, true
	}
	return nil
}

// unwrap returns the content of a signed token of the server.
func (e *exchange) unwrap(token []byte) ([]byte, error) {
	var w gssapi.WrapToken
	if len(token) >= gssapi.HdrLen {
		// The rest may be rotated to the right (RFC 4121, 4.2.5).
		rest := bytes.Clone(token[gssapi.HdrLen:])
		if n := int(binary.BigEndian.Uint16(token[6:8])); n > 0 && len(rest) > 0 {
			n %= len(rest)
			rest = append(rest[n:], rest[:n]...)
		}
		token = append(bytes.Clone(token[:gssapi.HdrLen]), rest...)
	}
	if err := w.Unmarshal(token, true); err != nil {
		return nil, err
	}
	if w.Flags&sealed != 0 {
		return nil, errors.New("the token is encrypted, want one that is signed")
	}
	if ok, err := w.Verify(e.key, keyusage.GSSAPI_ACCEPTOR_SEAL); !ok {
		return nil, err
	}
	return w.Payload, nil
}

// wrap signs a token for the server.
func (e *exchange) wrap(payload []byte) ([]byte, error) {
	kind, err := crypto.GetEtype(e.key.KeyType)
	if err != nil {
		return nil, err
	}
	w := gssapi.WrapToken{EC: uint16(kind.GetHMACBitLength() / 8), SndSeqNum: uint64(e.sent.SeqNumber), Payload: payload}
	if e.subkey {
		w.Flags = acceptorSubkey
	}
	if err := w.SetCheckSum(e.key, keyusage.GSSAPI_INITIATOR_SEAL); err != nil {
		return nil, err
	}
	return w.Marshal()
}
