package realzk

import (
	"encoding/binary"
	"io"

	"github.com/go-zksync/toolkit/zksynctest/internal/proxy"
)

// The connections of an election begin with the number of the server that
// dials and its election address. A server with a higher number hangs up and
// dials that address itself, past every link. So a link puts in its place the
// address of the link that leads back.
//
// The message: protocol version (int64, negative), number (int64), length
// (int32), "host:port"; version 2 has several addresses separated by '|'.
const (
	electionV1 = -65536
	electionV2 = -65535

	electionHead   = 8 + 8 + 4
	maxElectionLen = 512
)

// electionRewriter replaces the address by the address that back returns. It does not
// change a message of an unknown version.
func electionRewriter(back func() string) proxy.Rewriter {
	return func(r io.Reader) ([]byte, error) {
		head := make([]byte, electionHead)
		if n, err := io.ReadFull(r, head[:8]); err != nil {
			return head[:n], err
		}
		version := int64(binary.BigEndian.Uint64(head))
		if version != electionV1 && version != electionV2 {
			return head[:8], nil
		}
		if n, err := io.ReadFull(r, head[8:]); err != nil {
			return head[:8+n], err
		}
		length := int32(binary.BigEndian.Uint32(head[16:]))
		if length < 0 || length > maxElectionLen {
			return head, nil
		}
		addr := make([]byte, length)
		if n, err := io.ReadFull(r, addr); err != nil {
			return append(head, addr[:n]...), err
		}
		replaced := back()
		binary.BigEndian.PutUint32(head[16:], uint32(len(replaced)))
		return append(head, replaced...), nil
	}
}
