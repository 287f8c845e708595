package queue

import "context"

const (
	// fewRefusals is the number of refusals after which a Take takes turns.
	fewRefusals = 3
	// turnPause is the round of the longest pause that misses no turn.
	turnPause = 4
)

// prepare comes before each attempt, ahead of the reads, which would be old after it. again is the
// number of attempts in a row with one message.
func (t *take) prepare(ctx context.Context, again int) error {
	// If the same message fails again and again, there may be another reason than other consumers,
	// such as a server that lags. The first pauses are short, so that no turn is missed.
	if err := t.v.s.Pause(ctx, max(min(again, turnPause), again/4)); err != nil || t.refused < fewRefusals {
		return err
	}
	// Consumers rest only beside the ledgers of others. Without the permission to create one, the Take goes on.
	_, _ = t.c.openClaims(ctx, t.v)
	return t.line.nextTurn(ctx, t.took)
}
