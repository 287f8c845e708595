package kerberos

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/go-zksync/toolkit/session"
)

const (
	realm     = "EXAMPLE.COM"
	principal = "zookeeper/zk1.example.com"
)

// serviceKeys returns a keytab of the service.
func serviceKeys(t *testing.T, password string) *keytab.Keytab {
	t.Helper()
	keys := keytab.New()
	for _, kind := range []int32{etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA1_96} {
		if err := keys.AddEntry(principal, realm, password, time.Now(), 1, kind); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// mechanism returns a mechanism whose KDC has the keys.
func mechanism(keys *keytab.Keytab, kind int32) *Mechanism {
	return &Mechanism{
		login: client.NewWithPassword("app", realm, "", config.New()),
		tickets: func(p string) (messages.Ticket, types.EncryptionKey, error) {
			if p != principal {
				return messages.Ticket{}, types.EncryptionKey{}, errors.New("no such principal: " + p)
			}
			return issue("app", realm, p, keys, kind)
		},
	}
}

// authenticate runs an exchange with an acceptor to its end.
func authenticate(t *testing.T, m session.SASLMechanism, a *acceptor) error {
	t.Helper()
	e, token, err := m.Start(t.Context(), "zk1.example.com:2181")
	if err != nil {
		return err
	}
	for done := false; ; {
		challenge, err := a.accept(token)
		if err != nil {
			return err
		}
		if done {
			return nil
		}
		if token, done, err = e.Next(challenge); err != nil {
			return err
		}
	}
}

// An acceptor that has the service's keytab and the mechanism authenticate each other,
// and agree on no security layer, with each kind of key, with a key of the acceptor's
// own, and with tokens that are rotated. Breaks if initiate leaves out the flags, if
// Next answers in another order, if Next does not set the flag of the key, or if unwrap
// does not undo the rotation.
func TestExchange(t *testing.T) {
	keys := serviceKeys(t, "secret")
	for _, kind := range []int32{etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA1_96} {
		for _, a := range []*acceptor{{layers: 1}, {layers: 7}, {layers: 1, subkey: true}, {layers: 1, rotate: 12}} {
			a.keys = keys
			if err := authenticate(t, mechanism(keys, kind), a); err != nil {
				t.Errorf("%+v: %v", a, err)
				continue
			}
			if a.client != "app@EXAMPLE.COM" || !bytes.Equal(a.chosen, []byte{1, 0, 0, 0}) {
				t.Errorf("the acceptor knows %s, which has chosen %x; want app@EXAMPLE.COM, no layer and no other identity", a.client, a.chosen)
			}
		}
	}
	if got := mechanism(keys, 0).String(); got != "sasl:app@EXAMPLE.COM" {
		t.Errorf("String %q", got)
	}
}

// A server that does not prove that it has the key of its principal is refused, and
// so is a server that offers no plain connection; no message of a server causes a
// panic. Breaks if verify does not compare the times, or if Next does not look at the
// offer.
func TestAServerThatProvesNothing(t *testing.T) {
	keys := serviceKeys(t, "secret")
	kind := int32(etypeID.AES256_CTS_HMAC_SHA1_96)
	for says, a := range map[string]*acceptor{
		"refused":            {keys: serviceKeys(t, "another"), layers: 1},
		"to another AP-REQ":  {keys: keys, layers: 1, spoil: func(p *messages.EncAPRepPart) { p.Cusec++ }},
		"AP-REQ":             {keys: keys, layers: 1, spoil: func(p *messages.EncAPRepPart) { p.CTime = p.CTime.Add(time.Second) }},
		"security layers 06": {keys: keys, layers: 6},
	} {
		err := authenticate(t, mechanism(keys, kind), a)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one that says %q", err, says)
		}
	}
	for _, early := range []int{0, 1} {
		for _, token := range [][]byte{nil, {}, {0}, bytes.Repeat([]byte{0x60}, 40), {5, 4, 1, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 16)} {
			e, first, err := mechanism(keys, kind).Start(t.Context(), "zk1.example.com:2181")
			if err != nil {
				t.Fatal(err)
			}
			if early == 1 {
				reply, err := (&acceptor{keys: keys, layers: 1}).accept(first)
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := e.Next(reply); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := e.Next(token); err == nil {
				t.Errorf("the token %x was accepted", token)
			}
		}
	}
}

// A server whose proof is too short is refused, with each kind of key, and nothing panics. The line to break is the one
// with least in verify.
func TestAProofThatIsTooShort(t *testing.T) {
	for _, kind := range []int32{
		etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA256_128,
		etypeID.AES256_CTS_HMAC_SHA384_192, etypeID.DES3_CBC_SHA1_KD, etypeID.RC4_HMAC,
	} {
		for n := range 80 {
			b, err := asn1.Marshal(messages.APRep{PVNO: iana.PVNO, MsgType: msgtype.KRB_AP_REP, EncPart: types.EncryptedData{EType: kind, Cipher: make([]byte, n)}})
			if err != nil {
				t.Fatal(err)
			}
			token, err := asn1.Marshal(gssapi.OIDKRB5.OID())
			if err != nil {
				t.Fatal(err)
			}
			token = append(append(token, 2, 0), asn1tools.AddASNAppTag(b, asnAppTag.APREP)...)
			etype, err := crypto.GetEtype(kind)
			if err != nil {
				t.Fatal(err)
			}
			e := &exchange{key: types.EncryptionKey{KeyType: kind, KeyValue: make([]byte, etype.GetKeyByteSize())}}
			if _, _, err := e.Next(asn1tools.AddASNAppTag(token, 0)); err == nil {
				t.Errorf("kind %d: a proof of %d bytes was accepted", kind, n)
			}
		}
	}
}

// Start says what is wrong with a server's name, names the principal for which there is
// no ticket, and returns when its ctx ends. Breaks if Start waits for gokrb5 alone.
func TestStart(t *testing.T) {
	keys := serviceKeys(t, "secret")
	m := mechanism(keys, etypeID.AES256_CTS_HMAC_SHA1_96)
	for server, says := range map[string]string{
		"10.0.0.1:2181":         "give names in the connection string, or set Mechanism.Host",
		"[::1]:2181":            "give names in the connection string, or set Mechanism.Host",
		"zk1":                   `want one as "zk1.example.com:2181"`,
		"zk2.example.com:2181":  "ticket for zookeeper/zk2.example.com: no such principal",
		"zk1.example.com:21810": "",
	} {
		_, _, err := m.Start(t.Context(), server)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: error %v, want one that says %q", server, err, says)
		}
	}
	m.Host, m.Service = "cluster", "zk"
	if _, _, err := m.Start(t.Context(), "10.0.0.1:2181"); err == nil || !strings.Contains(err.Error(), "zk/cluster") {
		t.Errorf("error %v, want one about zk/cluster", err)
	}
	stuck := make(chan struct{})
	defer close(stuck)
	m.tickets = func(string) (messages.Ticket, types.EncryptionKey, error) {
		<-stuck
		return messages.Ticket{}, types.EncryptionKey{}, errors.New("the KDC has stopped")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the caller has gone")
	cancel(gone)
	if _, _, err := m.Start(ctx, "zk1.example.com:2181"); !errors.Is(err, gone) {
		t.Errorf("error %v, want the cause of the ctx", err)
	}
}
