package faults

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
)

const codeThrottled = -127

// overload sends a server so many requests that it refuses nearly all of them, and returns when the
// refusals have begun. stop ends the overload and waits until the requests have been answered.
func overload(t *testing.T, e *zksynctest.Ensemble) (stop func()) {
	t.Helper()
	const conns = 3
	ctx, cancel := context.WithCancel(t.Context())
	var refused atomic.Int64
	var wg sync.WaitGroup
	stop = func() {
		cancel()
		wg.Wait()
	}
	t.Cleanup(stop)
	for range conns {
		conn, err := openSession(ctx, e.DirectAddr(1), 40*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer conn.Close()
			for ctx.Err() == nil {
				n, err := burst(conn)
				refused.Add(int64(n))
				if err != nil {
					t.Errorf("overload: %v", err)
					return
				}
			}
		})
	}
	if !eventually(patience, func() bool { return refused.Load() > 1000 }) {
		t.Fatal("the server does not refuse requests")
	}
	return stop
}

// burst sends many requests at once, waits for their answers, and counts the refused requests.
func burst(conn net.Conn) (refused int, err error) {
	const requests = 300
	be := binary.BigEndian
	request := be.AppendUint32(nil, 4+4+4+1+1)
	request = append(request, 0, 0, 0, 1, 0, 0, 0, 3) // exists
	request = append(be.AppendUint32(request, 1), '/', 0)
	var all []byte
	for range requests {
		all = append(all, request...)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write(all); err != nil {
		return 0, err
	}
	for range requests {
		answer, err := readFrame(conn)
		if err != nil {
			return refused, err
		}
		if len(answer) >= 20 && int32(be.Uint32(answer[16:])) == codeThrottled {
			refused++
		}
	}
	return refused, nil
}
