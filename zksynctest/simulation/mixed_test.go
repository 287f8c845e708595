package simulation_test

// mixed uses a lock, a semaphore, an election and a queue over the same sessions, each with some of
// the clients.
var mixed = &workload{name: "mixed", losses: requestsOfQueues, start: func(w *world) func(*simClient, action) error {
	var all []func(*simClient, action) error
	for _, part := range []*workload{mutexes, queues, semaphores, elections} {
		all = append(all, part.start(w))
	}
	return func(c *simClient, a action) error { return all[c.number%len(all)](c, a) }
}}
