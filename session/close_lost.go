package session

import (
	"context"
	"time"
)

// bury closes the connection of a lost session, and waits for the goroutines of the
// session and for its functions.
func bury(s *Session) {
	if s.remains {
		s.wg.Go(func() {
			// After this time the server has expired the session by itself.
			ctx, cancel := context.WithTimeout(context.Background(), 2*s.Timeout())
			defer cancel()
			// Manager.Close tries for as long as with a session that lives.
			defer context.AfterFunc(s.m.ctx, func() {
				_ = sleep(ctx, closePatience, ctx)
				cancel()
			})()
			closeOnServer(ctx, s)
		})
	}
	s.link.shutdown()
	s.wg.Wait()
	awaitFunctions(s)
}

// awaitFunctions waits until the functions that began before the loss of a session have returned. They
// may clean up. Manager.Close waits for them for as long as with an idle session.
func awaitFunctions(s *Session) {
	idle := s.gate.close(ErrLost) // the gate keeps the reason of the loss
	select {
	case <-idle:
		return
	case <-s.m.ctx.Done():
	}
	wait := time.NewTimer(s.Timeout() * 2 / 3)
	defer wait.Stop()
	select {
	case <-idle:
	case <-wait.C:
	}
}

// closePatience is the time in which Manager.Close tries to close the session on a server.
const closePatience = time.Second

// closeOnServer ends on the server a session that this client has given up, so that
// contenders behind its ephemerals need not wait for the expiry. It repeats its attempts
// until ctx ends.
func closeOnServer(ctx context.Context, s *Session) {
	l := &link{s: s, closing: true}
	l.ctx, l.cancel = context.WithCancel(ctx)
	defer context.AfterFunc(ctx, l.stop)()
	l.run()
}
