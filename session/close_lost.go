package session

import (
	"context"
	"time"
)

// bury closes the connection of a lost session, and waits for the goroutines of the
// session. It waits for the functions that began before the loss, which may clean up: from
// Manager.Close on, for as long as Close waits in an idle session.
func bury(s *Session) {
	idle := s.gate.close(ErrLost) // the gate keeps the reason of the loss
	patient, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	defer context.AfterFunc(s.m.ctx, func() {
		_ = sleep(patient, s.Timeout()*2/3, patient)
		giveUp()
	})()
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
	select {
	case <-idle:
	case <-patient.Done():
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
