package zkserver_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A frame with an invalid length closes the connection.
func TestFramesThatAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		for name, head := range map[string]int32{
			"empty": 0, "negative": -1, "most negative": math.MinInt32, "a byte too long": 1048576, "longest": math.MaxInt32,
		} {
			t.Log(name)
			r := session(t, s, 0)
			r.write(rec{}.i32(head))
			r.closed()
			n := rawDial(t, s)
			n.write(rec{}.i32(head))
			n.closed()
		}
		r := session(t, s, 0)
		r.frame(rec{}.i32(1)) // too short for an operation
		r.closed()
		if len(s.Sessions()) != 6 {
			t.Fatal("a bad frame costs the connection, not the session")
		}
	})
}

// A request of MaxFrame bytes is answered, and a longer frame closes the connection.
func TestTheLongestFrame(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		const longest = 100_000
		s := start(t, zkserver.Config{MaxFrame: longest})
		r := session(t, s, 0)
		data := make([]byte, longest-8-4-1-4-4)
		body := append(rec{}.str("/").i32(int32(len(data))), data...).i32(-1)
		if st := r.want(0, zkserver.OpSetData, body).stat(); int(st.dataLength) != len(data) {
			t.Fatalf("%+v", st)
		}
		r.send(zkserver.OpSetData, append(body, 0))
		r.closed()
	})
}

// A request that arrives byte by byte is answered as usual.
func TestFramesInPieces(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 40*time.Second)
		frame := append(rec{}.i32(1, int32(zkserver.OpExists)), watchRec("/")...)
		for _, b := range append(rec{}.i32(int32(len(frame))), frame...) {
			r.write([]byte{b})
			synctest.Wait()
		}
		if p := r.recv(); p.xid != 1 || p.code != 0 {
			t.Fatalf("%+v", p)
		}
	})
}

// The server survives any garbage that a client sends.
func TestGarbage(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		rng := rand.New(rand.NewPCG(1, 2))
		ops := []zkserver.OpCode{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 19, 21, 22, 18, 100, 101, 102, 105}
		for range 300 {
			r := session(t, s, 0)
			for range 20 {
				body := make([]byte, rng.IntN(60))
				for i := range body {
					body[i] = byte(rng.IntN(4)) * byte(rng.IntN(2))
				}
				if _, err := r.nc.Write(append(rec{}.i32(int32(len(body)+8), 1, int32(ops[rng.IntN(len(ops))])), body...)); err != nil {
					break
				}
			}
			r.nc.Close()
		}
		synctest.Wait()
		session(t, s, 0).want(0, zkserver.OpExists, rec{}.str("/zookeeper").flag(false))
	})
}
