package main

// queueBugs are in the transactions of the queues.
var queueBugs = []bug{
	{"repeat a batch without a check of its marker", []edit{{"zksync/internal/queue/commit/marker.go",
		"Data: []byte{}, Version: k.version}",
		"Data: []byte{}, Version: -1}"}}, []finder{simulated()}},
	{"repeat a Take without a look-up of the message", []edit{{"zksync/internal/queue/commit/sender.go",
		"e.Epoch != noEpoch }) {",
		"e.Epoch != noEpoch && false }) {"}}, []finder{tested("./zksync", "TestTakeIsNotRepeatedForAMessageOfTheSameName")}},
	{"continue after a batch without stopping the requests in flight", []edit{{"zksync/internal/queue/commit/sender.go",
		"	happened, err := r.marker.fence(ctx, s)\n",
		"	happened, err := false, error(nil)\n"}}, []finder{simulated()}},
	{"ledger: let the version wrap of an order znode that one consumer writes", []edit{{"zksync/internal/queue/order_znode.go",
		"st != nil && st.version < o.cfg.maxOrderVersion {",
		"st != nil {"}},
		[]finder{tested("./zksync/internal/queue", "^TestOrderZnodeIsReplaced$")}},
	{"ledger: claim by a state that was read before a pause", []edit{{"zksync/internal/queue/stream.go",
		"			if pause > 0 {\n",
		"			if pause > time.Hour {\n"}},
		[]finder{tested("./zksync/internal/queue", "^TestRefusedConsumerDoesNotStarve$")}},
}
