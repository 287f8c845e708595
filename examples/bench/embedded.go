package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// embedded is the server of zksynctest, driven by frames alone.
type embedded struct{ rowFuncs }

func newEmbedded() *embedded {
	return &embedded{rowFuncs{"embedded requests": pipelined, "embedded start": firstSession}}
}

func (*embedded) name() string { return ours }
func (*embedded) close() error { return nil }

// firstSession starts a server and opens a session, over and over.
func firstSession(ctx context.Context, j job) (sample, error) {
	total := sample{Ops: j.Ops}
	for range j.Ops {
		var server *zkserver.Server
		var m *session.Manager
		s, err := timed(1, func() (err error) {
			if server, err = zkserver.New(zkserver.Config{}); err != nil {
				return err
			}
			m, err = session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(server.Dial))
			return err
		})
		if err != nil {
			return sample{}, err
		}
		total.Elapsed += s.Elapsed
		if err := errors.Join(m.Close(), server.Close()); err != nil {
			return sample{}, err
		}
	}
	return total, nil
}

// pipelined sends reads and writes in turn over Clients connections on
// loopback, without waiting for answers.
func pipelined(ctx context.Context, j job) (sample, error) {
	server, err := zkserver.New(zkserver.Config{})
	if err != nil {
		return sample{}, err
	}
	defer server.Close()
	address, err := server.Listen("127.0.0.1:0")
	if err != nil {
		return sample{}, err
	}
	conns := make([]net.Conn, j.Clients)
	for i := range conns {
		if conns[i], err = net.Dial("tcp", address.String()); err != nil {
			return sample{}, err
		}
		defer conns[i].Close()
		if err := shakeHands(conns[i]); err != nil {
			return sample{}, err
		}
	}
	path := "/x"
	if err := exchange(conns[0], append(createFrame(1, path), nil...), 1); err != nil {
		return sample{}, err
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	return timed(j.Ops, func() error {
		errs := make([]error, len(conns))
		var wg sync.WaitGroup
		for i, conn := range conns {
			wg.Go(func() { errs[i] = drive(conn, path, j.Ops/len(conns)) })
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}

// drive has at most a window of requests unanswered.
func drive(conn net.Conn, path string, n int) error {
	const window = 4096
	slots := make(chan struct{}, window)
	failed := make(chan error, 1)
	go func() {
		in := bufio.NewReaderSize(conn, 256<<10)
		for range n {
			if err := skipAnswer(in); err != nil {
				failed <- err
				return
			}
			<-slots
		}
		failed <- nil
	}()
	out := bufio.NewWriterSize(conn, 64<<10)
	for i := range n {
		select {
		case slots <- struct{}{}:
		default: // the window is full: send the buffered requests first
			if err := out.Flush(); err != nil {
				return err
			}
			select {
			case slots <- struct{}{}:
			case err := <-failed:
				return err
			}
		}
		frame := getFrame(int32(i+2), path)
		if i%2 == 0 {
			frame = setFrame(int32(i+2), path)
		}
		if _, err := out.Write(frame); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return <-failed
}

func framed(fill func([]byte) []byte) []byte {
	b := fill(make([]byte, 4, 64))
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func putInt(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

func putString[T string | []byte](b []byte, s T) []byte {
	return append(putInt(b, int32(len(s))), s...)
}

func createFrame(xid int32, path string) []byte {
	return framed(func(b []byte) []byte {
		b = putString(putString(putInt(putInt(b, xid), 1), path), message)
		b = putString(putString(putInt(putInt(b, 1), 31), "world"), "anyone")
		return putInt(b, 0)
	})
}

func setFrame(xid int32, path string) []byte {
	return framed(func(b []byte) []byte {
		return putInt(putString(putString(putInt(putInt(b, xid), 5), path), message), -1)
	})
}

func getFrame(xid int32, path string) []byte {
	return framed(func(b []byte) []byte { return append(putString(putInt(putInt(b, xid), 4), path), 0) })
}

func shakeHands(conn net.Conn) error {
	return exchange(conn, framed(func(b []byte) []byte {
		b = binary.BigEndian.AppendUint64(putInt(b, 0), 0)      // protocol, last zxid
		b = binary.BigEndian.AppendUint64(putInt(b, 30_000), 0) // timeout, session
		return putString(b, make([]byte, 16))
	}), 1)
}

func exchange(conn net.Conn, frame []byte, answers int) error {
	if _, err := conn.Write(frame); err != nil {
		return err
	}
	for range answers {
		if err := skipAnswer(conn); err != nil {
			return err
		}
	}
	return nil
}

func skipAnswer(in io.Reader) error {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, in, int64(binary.BigEndian.Uint32(head[:])))
	return err
}
