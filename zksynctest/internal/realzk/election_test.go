package realzk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// greeting is the beginning of an election connection.
func greeting(version, sid int64, length int32, addr string) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(version))
	b = binary.BigEndian.AppendUint64(b, uint64(sid))
	b = binary.BigEndian.AppendUint32(b, uint32(length))
	return append(b, addr...)
}

// The rewriter replaces the election address in the greeting of a server, in both versions of the protocol.
func TestElectionRewriter(t *testing.T) {
	const replaced = "127.0.0.1:12345"
	rewrite := electionRewriter(func() string { return replaced })
	for name, test := range map[string]struct{ in, out []byte }{
		"version 1": {
			greeting(electionV1, 2, 13, "127.0.0.1:999"),
			greeting(electionV1, 2, int32(len(replaced)), replaced),
		},
		"version 2": {
			greeting(electionV2, 3, 27, "127.0.0.1:999|127.0.0.2:999"),
			greeting(electionV2, 3, int32(len(replaced)), replaced),
		},
		"no address":     {greeting(electionV1, 2, 0, ""), greeting(electionV1, 2, int32(len(replaced)), replaced)},
		"old, a number":  {binary.BigEndian.AppendUint64(nil, 2), binary.BigEndian.AppendUint64(nil, 2)},
		"absurd length":  {greeting(electionV1, 2, maxElectionLen+1, ""), greeting(electionV1, 2, maxElectionLen+1, "")},
		"negative":       {greeting(electionV1, 2, -1, ""), greeting(electionV1, 2, -1, "")},
		"later version":  {greeting(-65534, 2, 3, "abc"), greeting(-65534, 2, 3, "abc")},
		"nothing at all": {nil, nil},
	} {
		rest := []byte("what follows")
		in := bytes.NewReader(append(append([]byte(nil), test.in...), rest...))
		if len(test.in) == 0 {
			in, rest = bytes.NewReader(nil), nil
		}
		out, err := rewrite(in)
		if err != nil && (len(test.in) > 0 || !errors.Is(err, io.EOF)) {
			t.Errorf("%s: %v", name, err)
		}
		unread, _ := io.ReadAll(in)
		if want := append(append([]byte(nil), test.out...), rest...); !bytes.Equal(append(out, unread...), want) {
			t.Errorf("%s: got %q and %q, want %q", name, out, unread, want)
		}
	}
}

// The rewriter passes a greeting that was cut short unchanged.
func TestElectionRewriterKeepsWhatWasCutShort(t *testing.T) {
	rewrite := electionRewriter(func() string { return "127.0.0.1:12345" })
	whole := greeting(electionV1, 2, 13, "127.0.0.1:999")
	for n := range whole {
		out, err := rewrite(bytes.NewReader(whole[:n]))
		if err == nil || !bytes.Equal(out, whole[:n]) {
			t.Errorf("of %d bytes got %q, %v", n, out, err)
		}
	}
}
