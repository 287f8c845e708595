package queue

import (
	"context"
	"time"
)

const (
	// fewRefusals is the number of refusals after which a Take takes turns.
	fewRefusals = 3
	// turnPause is the round of the longest pause that misses no turn.
	turnPause = 4
	// longMiss is the time after which a Take takes turns that has found each message gone. It is much
	// longer than a consumer among ten that take messages needs for one: turns cost requests.
	longMiss = 500 * time.Millisecond
)

// prepare comes before each attempt, ahead of the reads, which would be old after it. again is the
// number of attempts in a row with one message.
func (t *take) prepare(ctx context.Context, again int) error {
	// If the same message fails again and again, there may be another reason than other consumers,
	// such as a server that lags. The first pauses are short, so that no turn is missed.
	if err := t.v.s.Pause(ctx, max(min(again, turnPause), again/4)); err != nil || !t.needsTurn() {
		return err
	}
	// Consumers rest only beside the ledgers of others. Without the permission to create one, the Take goes on.
	_, _ = t.c.openClaims(ctx, t.v)
	return t.line.nextTurn(ctx, t.took)
}

// miss notes that another client has removed the message of an attempt.
func (t *take) miss() {
	if t.missed++; t.missed == 1 {
		t.missedAt = time.Now()
	}
}

// startWait starts the wait for a message of an empty queue.
func (t *take) startWait(ctx context.Context) error {
	t.missed = 0
	return t.wait.start(ctx)
}

// needsTurn reports whether other consumers are faster again and again.
func (t *take) needsTurn() bool {
	return t.refused >= fewRefusals || t.missed >= fewRefusals && time.Since(t.missedAt) > longMiss
}

// yield lets the consumers in the line go ahead if Takes of this view have followed one another for some
// time: these Takes are never refused, and learn of consumers farther from the servers in no other way.
func (t *take) yield(ctx context.Context) error {
	// Without free messages, the consumers in the line are idle.
	if !t.v.takes.mustLook() || !t.v.partitions.hasFree() || !t.line.othersWait(ctx) {
		return nil
	}
	return t.line.nextTurn(ctx, t.took)
}
