package queue

import "time"

const (
	// leastTrip stands for a round trip that is too short to tell consumers apart.
	leastTrip = 200 * time.Microsecond

	// maxPause limits the pause of a consumer that was slower than others.
	maxPause = 100 * time.Millisecond

	// maxTurn limits the wait for the turn of another consumer, which needs three round trips.
	maxTurn = 200 * time.Millisecond
)
