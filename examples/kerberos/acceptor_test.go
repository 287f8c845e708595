package kerberos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/service"
	"github.com/jcmturner/gokrb5/v8/spnego"
	"github.com/jcmturner/gokrb5/v8/types"
)

// An acceptor is the server's side of GSSAPI, as Java's: it checks the ticket by its
// keytab, proves that it has the key, and offers security layers.
type acceptor struct {
	keys   *keytab.Keytab
	layers byte
	subkey bool // Wrap tokens use a key of the acceptor's
	rotate int  // by which Wrap tokens of the acceptor are rotated
	// spoil changes the proof of the acceptor.
	spoil func(*messages.EncAPRepPart)

	stage  int
	key    types.EncryptionKey
	client string // the principal that has authenticated
	chosen []byte
}

func (a *acceptor) accept(token []byte) ([]byte, error) {
	a.stage++
	switch a.stage {
	case 1:
		return a.reply(token)
	case 2:
		if len(token) > 0 {
			return nil, errors.New("expecting no response data")
		}
		return a.wrap([]byte{a.layers, 0, 1, 0})
	case 3:
		var w gssapi.WrapToken
		if err := w.Unmarshal(token, false); err != nil {
			return nil, err
		}
		if _, err := w.Verify(a.key, keyusage.GSSAPI_INITIATOR_SEAL); err != nil {
			return nil, err
		}
		if a.subkey != (w.Flags&gssapi.MICTokenFlagAcceptorSubkey != 0) {
			return nil, fmt.Errorf("flags %x", w.Flags)
		}
		a.chosen = w.Payload
		return nil, nil
	}
	return nil, errors.New("too many tokens")
}

// reply checks an AP-REQ and returns an AP-REP.
func (a *acceptor) reply(token []byte) ([]byte, error) {
	var t spnego.KRB5Token
	if err := t.Unmarshal(token); err != nil {
		return nil, err
	}
	ok, client, err := service.VerifyAPREQ(&t.APReq, service.NewSettings(a.keys))
	if err != nil || !ok {
		return nil, fmt.Errorf("refused: %w", err)
	}
	if !types.IsFlagSet(&t.APReq.APOptions, flags.APOptionMutualRequired) || t.APReq.Authenticator.Cksum.Checksum[20]&gssapi.ContextFlagMutual == 0 {
		return nil, errors.New("no proof was asked for")
	}
	a.client = client.CName().PrincipalNameString() + "@" + client.Domain()
	session := t.APReq.Ticket.DecryptedEncPart.Key
	a.key = session
	proof := messages.EncAPRepPart{CTime: t.APReq.Authenticator.CTime, Cusec: t.APReq.Authenticator.Cusec, SequenceNumber: 7}
	if a.subkey {
		kind, err := crypto.GetEtype(session.KeyType)
		if err != nil {
			return nil, err
		}
		if a.key, err = types.GenerateEncryptionKey(kind); err != nil {
			return nil, err
		}
		proof.Subkey = a.key
	}
	if a.spoil != nil {
		a.spoil(&proof)
	}
	b, err := asn1.Marshal(proof)
	if err != nil {
		return nil, err
	}
	sealed, err := crypto.GetEncryptedData(asn1tools.AddASNAppTag(b, asnAppTag.EncAPRepPart), session, keyusage.AP_REP_ENCPART, 0)
	if err != nil {
		return nil, err
	}
	b, err = asn1.Marshal(messages.APRep{PVNO: iana.PVNO, MsgType: msgtype.KRB_AP_REP, EncPart: sealed})
	if err != nil {
		return nil, err
	}
	answer, err := asn1.Marshal(gssapi.OIDKRB5.OID())
	if err != nil {
		return nil, err
	}
	answer = append(append(answer, 2, 0), asn1tools.AddASNAppTag(b, asnAppTag.APREP)...)
	return asn1tools.AddASNAppTag(answer, 0), nil
}

func (a *acceptor) wrap(payload []byte) ([]byte, error) {
	kind, err := crypto.GetEtype(a.key.KeyType)
	if err != nil {
		return nil, err
	}
	w := gssapi.WrapToken{Flags: gssapi.MICTokenFlagSentByAcceptor, EC: uint16(kind.GetHMACBitLength() / 8), SndSeqNum: 7, Payload: payload}
	if a.subkey {
		w.Flags |= gssapi.MICTokenFlagAcceptorSubkey
	}
	if err := w.SetCheckSum(a.key, keyusage.GSSAPI_ACCEPTOR_SEAL); err != nil {
		return nil, err
	}
	b, err := w.Marshal()
	if err != nil {
		return nil, err
	}
	rest := b[gssapi.HdrLen:]
	n := len(rest) - a.rotate
	binary.BigEndian.PutUint16(b[6:8], uint16(a.rotate))
	return append(b[:gssapi.HdrLen:gssapi.HdrLen], append(rest[n:len(rest):len(rest)], rest[:n]...)...), nil
}

// issue makes a ticket as the KDC does that knows the service's keys.
func issue(client, realm, principal string, keys *keytab.Keytab, kind int32) (messages.Ticket, types.EncryptionKey, error) {
	now := time.Now().UTC()
	return messages.NewTicket(types.NewPrincipalName(1, client), realm, types.NewPrincipalName(2, principal), realm,
		types.NewKrbFlags(), keys, kind, 1, now, now, now.Add(time.Hour), now.Add(time.Hour))
}
